/**
 * Verifies a message of a webhook, or a call of an http handler, and returns its JSON body. It throws a HoldfastError with the code
 * AUTH_ERROR if the message was not signed with one of the secrets, or if its time differs from now by more than 5 minutes. The body
 * must be exactly as it was received. A message that is sent again has the same Webhook-Id: store the id with your result.
 */
export function verify(
  secrets: string | string[],
  headers: { get(name: string): string | null } | Record<string, string | string[] | undefined>,
  body: string | Uint8Array,
  options?: { now?: number },
): any;
