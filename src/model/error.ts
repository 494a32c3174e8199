// The one error that reaches a client of the management API; knows nothing of how it is sent.

/** Statuses of the management API. 422 is never used; 503 is for states that pass: no worker runs, an upgrade is in progress, a node is not ready. */
export type ApiStatus =
  400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 413 | 415 | 429 | 500 | 503 | 504;

/** An expected failure: its message is shown to the client as `{"error": message}`, so it names the field and holds no internals. */
export class ApiError extends Error {
  readonly status: ApiStatus;
  /** Response headers that belong to the failure, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  /** More that is wrong with the same value, for lists of all errors; a response has only the first one. */
  readonly others: readonly ApiError[];

  constructor(
    status: ApiStatus,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      readonly others?: readonly ApiError[];
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ApiError";
    this.status = status;
    this.headers = options.headers ?? {};
    this.others = options.others ?? [];
  }
}

/** Shorthand for the 400 that names a field: `targets[0].port: must be ...`. */
export function invalid(path: string, message: string): ApiError {
  return new ApiError(400, path === "" ? message : `${path}: ${message}`);
}

/** A 503 of a state that passes by itself. `message` says what to do until then. */
export const unavailable = (message: string, cause?: unknown): ApiError =>
  new ApiError(503, message, { cause, headers: { "retry-after": "5" } });

/** The 503 of a gateway whose own database cannot be used: a full disk, for one. The message says why. */
export class StorageError extends ApiError {
  constructor(message: string, cause?: unknown) {
    super(503, message, { cause, headers: { "retry-after": "5" } });
    this.name = "StorageError";
  }
}

/** No worker can respond. */
export const noWorker = (consequence = ""): ApiError =>
  unavailable(
    `no worker is running at the moment${consequence}; the gateway starts them again: repeat the request in a few seconds, and look for the reason in the log if this persists`,
  );

/** One thing wrong with a configuration: where (JSON path, `""` for the whole) and what. */
export interface Issue {
  readonly path: string;
  readonly message: string;
  /** 409 for a conflict with an existing object, 400 for everything else. */
  readonly status: 400 | 409;
}
