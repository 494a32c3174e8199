// What a passphrase has to be like; the gateway decides.

/** What is wrong with it, in words; null: nothing. */
export function passphraseProblem(text: string): string | null {
  if (text.length < 12) return "At least 12 characters";
  if (text.length > 1024) return "At most 1024 characters";
  // It travels in a header.
  return /^[\x20-\x7e]+$/.test(text) && text === text.trim()
    ? null
    : "Letters, digits and signs of a plain English keyboard only, and no space at either end";
}
