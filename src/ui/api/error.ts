// API errors in the form that forms and panels show; knows no page.

/** An error response of the management API, or a network error (status 0). */
export class ApiError extends Error {
  readonly status: number;
  /** Path of the invalid field, as in the API: `targets[0].port`; null: none. */
  readonly field: string | null;
  /** The message without the field. */
  readonly detail: string;
  /** Request id, to find the error in the logs. */
  readonly requestId: string | null;
  readonly headers: Headers;

  constructor(status: number, message: string, headers: Headers = new Headers()) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.headers = headers;
    this.requestId = headers.get("x-request-id");
    const [, field = null, detail = message] =
      /^([A-Za-z_$][\w$-]*(?:\[\d+\]|\.[\w$-]+)*): (.*)$/s.exec(message) ?? [];
    this.field = status === 400 || status === 409 || status === 403 ? field : null;
    this.detail = this.field === null ? message : detail;
  }
}

/** An error of opening a port, which names the address in use, but no field; null: another error. */
export function portErrorOf({ message }: ApiError): PortError | null {
  const [, text] = /^[a-z ]+ "[^"]*": ((?:UDP )?port .*)$/s.exec(message) ?? [];
  if (text === undefined) return null;
  return { field: text.includes("no such address") ? "address" : "port", text };
}

interface PortError {
  readonly field: "address" | "port";
  readonly text: string;
}

/** `targets[0].port` as a form path: `targets.0.port`. */
export const toFormPath = (field: string): string => field.replaceAll(/\[(\d+)\]/g, ".$1");

/** Reads the body of an error response. */
export async function toApiError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  return new ApiError(response.status, messageOf(text, response.status), response.headers);
}

function messageOf(text: string, status: number): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && "error" in body) return String(body.error);
  } catch {
    // Something between the browser and the gateway answered, and not with JSON.
  }
  return `the gateway responded with status ${status}`;
}

/** The message of any thrown value. */
export const toMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
