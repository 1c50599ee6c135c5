import "./docs.css";

// What the documentation does beyond HTML: the theme of the dashboard, and a button that copies a block of code.
{
  const theme = localStorage.getItem("holdfast.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
}

addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("pre > code")) {
    const button = document.createElement("button"), frame = document.createElement("div");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", () => void navigator.clipboard?.writeText(code.textContent ?? "").then(() => (button.textContent = "Copied")));
    frame.className = "code";
    code.parentElement!.replaceWith(frame);
    frame.append(code.parentElement!, button);
  }
});

export {};
