// The gateway's log: one line per event, as JSON or text; knows nothing of the events, only which keys are secret.

const levels = { debug: 10, info: 20, warn: 30, error: 40 } as const;
export type LogLevel = keyof typeof levels;
export const logLevels = Object.keys(levels) as LogLevel[];

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes events. Redacts the values of secret keys at any depth. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogOptions {
  /** Drops events below it. */
  readonly level: LogLevel;
  /** `text` is for a terminal, `json` for programs. */
  readonly format: "text" | "json";
  readonly color?: boolean;
  /** Receives a line with its line feed. */
  readonly sink: (line: string) => void;
  readonly now?: () => number;
}

export function createLog(options: LogOptions): Log {
  const threshold = levels[options.level];
  const now = options.now ?? Date.now;
  const write = (level: LogLevel, message: string, fields: LogFields = {}): void => {
    if (levels[level] < threshold) return;
    const at = new Date(now()).toISOString();
    const clean = redact(fields) as Record<string, unknown>;
    const text = redactUrl(message);
    const line =
      options.format === "json"
        ? JSON.stringify({ time: at, level, message: text, ...clean })
        : toText({ at, level, message: text, fields: clean }, options.color ?? false);
    options.sink(`${escapeControls(line, options.color ?? false)}\n`);
  };
  return {
    write,
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

const REDACTED = "[redacted]";
const SECRET_KEY =
  /^(?:proxy[-_])?authorization$|^(?:set[-_])?cookie$|pass(?:word|phrase|wd)|secret|private[-_]?key|api[-_]?key|credential|session[-_]?id|(?:^|[-_])token$|[a-z]Token$/i;
const SECRET_PARAMETER =
  /([?&;](?:access_token|token|api_?key|password|secret|client_secret|code|signature)=)[^&;#\s"']*/gi;
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^/\s:@]*:)[^/\s@]+@/gi;

/** Secrets also occur in query strings and in the userinfo of URLs. */
function redactUrl(text: string): string {
  if (!text.includes("=") && !text.includes("@")) return text;
  return text.replace(SECRET_PARAMETER, `$1${REDACTED}`).replace(URL_PASSWORD, `$1${REDACTED}@`);
}

function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactUrl(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth > 6) return "[deep]";
  if (value instanceof Error) return fromError(value, depth);
  if (value instanceof Date) return value;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const entries = value instanceof Map || value instanceof Headers ? value : Object.entries(value);
  const result: Record<string, unknown> = {};
  for (const [key, item] of entries as Iterable<[string, unknown]>)
    result[key] = SECRET_KEY.test(key) && item !== null ? REDACTED : redact(item, depth + 1);
  return result;
}

function fromError(error: Error, depth: number): unknown {
  const code = (error as { code?: unknown }).code;
  return {
    name: error.name,
    message: redactUrl(error.message),
    ...(code === undefined ? {} : { code }),
    ...(error.stack === undefined ? {} : { stack: redactUrl(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}

const colors: Record<LogLevel, string> = {
  debug: "\x1b[2m",
  info: "\x1b[36m",
  warn: "\x1b[33m",
  error: "\x1b[31m",
};

interface TextLine {
  readonly at: string;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

function toText({ at, level, message, fields }: TextLine, color: boolean): string {
  // Escapes values here, so that the line's only escape sequences are our own colors.
  let tail = "";
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const shown = typeof value === "string" && /^[\w./:@+-]+$/.test(value);
    tail += ` ${key}=${shown ? value : JSON.stringify(value)}`;
  }
  const body = escapeControls(`${message}${tail}`, false);
  const word = level.toUpperCase().padEnd(5);
  const time = at.slice(11, 23);
  if (!color) return `${time} ${word} ${body}`;
  return `\x1b[2m${time}\x1b[0m ${colors[level]}${word}\x1b[0m ${body}`;
}

/** A line feed or an escape sequence in a value must not forge a second line or drive a terminal. */
function escapeControls(line: string, keepColor: boolean): string {
  return line.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    if (keepColor && character === "\x1b") return character;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
