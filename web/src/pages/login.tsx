import { useState } from "preact/hooks";
import { logIn, Refused } from "../core/api";
import { to } from "../core/router";
import { Failure, useTitle } from "../ui/basic";

/** Login exchanges an API key for a session. The key itself is not kept in the browser. */
export function Login() {
  const [key, set] = useState(""), [error, setError] = useState<Refused>(), [busy, setBusy] = useState(false);
  useTitle("Log in");
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError(undefined);
    try { await logIn(key.trim()); } catch (e) { setError(e as Refused); setBusy(false); }
  };
  return <main class="login"><form onSubmit={submit}>
    <div class="row"><img src="/icon.svg" alt="" width="28" height="28" /><h1>Holdfast</h1></div>
    <label class="field">API key<input type="password" autocomplete="current-password" required value={key} onInput={e => set(e.currentTarget.value)} /><small>The session has the rights of the key, lasts 12 hours, and ends with the key.</small></label>
    {error && <Failure error={error} />}
    <button class="primary" type="submit" disabled={busy}>{busy ? "Logging in…" : "Log in"}</button>
    <p class="muted">Create a key with <code>holdfast keys create --role operate</code>. <a class="link" href={to.docs("")}>Documentation</a></p>
  </form></main>;
}
