// The rules of a passphrase; the gateway checks them again.

/** Its error; null: valid. */
export function passphraseProblem(text: string): string | null {
  if (text.length < 12) return "At least 12 characters";
  if (text.length > 1024) return "At most 1024 characters";
  // It is sent in a header.
  return /^[\x20-\x7e]+$/.test(text) && text === text.trim()
    ? null
    : "Printable ASCII only, without leading or trailing spaces";
}
