// What goes wrong at a DNS provider, in words for people; knows no provider.

/** The message says what a person can do about it, and holds no secret. */
export class DnsError extends Error {
  /** The status that the provider answered with; null: it did not, or that was not the matter. */
  readonly status: number | null;

  constructor(message: string, status: number | null = null) {
    super(message);
    this.name = "DnsError";
    this.status = status;
  }
}

/** What happened, for people. What is no failure of a provider is our mistake, and only its kind is told. */
export function failureText(error: unknown): string {
  if (error instanceof DnsError) return error.message;
  if (error instanceof Error && error.name === "AbortError") return "it was called off";
  return `unexpected: ${error instanceof Error ? error.name : "failure"}`;
}
