// Errors of DNS providers for users; knows no provider.

/** The message says what to do, and contains no secret. */
export class DnsError extends Error {
  /** Status of the provider's response; null: no response, or another cause. */
  readonly status: number | null;

  constructor(message: string, status: number | null = null) {
    super(message);
    this.name = "DnsError";
    this.status = status;
  }
}

/** Message for users. Of an unexpected error only the name is shown. */
export function failureText(error: unknown): string {
  if (error instanceof DnsError) return error.message;
  if (error instanceof Error && error.name === "AbortError") return "it was canceled";
  return `unexpected: ${error instanceof Error ? error.name : "failure"}`;
}
