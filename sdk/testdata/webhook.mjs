// Verifies the messages of a file and prints the results.
import { readFileSync } from "node:fs";
import { verify } from "@holdfast/client";

for (const { name, secrets, headers, body } of JSON.parse(readFileSync(process.env.MESSAGES, "utf8"))) {
  try {
    console.log(`${name}:`, verify(secrets, headers, Buffer.from(body, "base64")).type);
    verify(secrets, new Headers(headers), Buffer.from(body, "base64").toString());
  } catch (error) {
    console.log(`${name}:`, error.code);
  }
}
