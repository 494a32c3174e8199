// Parses directives of nginx as users add them to hosts, and finds those that may deny access; knows no host.

export interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  /** Null: it ends with a semicolon. */
  readonly block: readonly Directive[] | null;
}

/** Limits, timeouts and transfer options. Every other directive may deny access or identify the client. */
const HARMLESS =
  /^(?:client_(?:max_body_size|body_(?:buffer_size|timeout|temp_path|in_(?:file_only|single_buffer))|header_\w+)|(?:send|keepalive|resolver)_timeout|keepalive_(?:requests|time)|proxy_(?:connect_timeout|read_timeout|send_timeout|buffering|buffers|buffer_size|busy_buffers_size|max_temp_file_size|temp_file_write_size|request_buffering|http_version|redirect|socket_keepalive|force_ranges|limit_rate|cookie_path|cookie_domain|hide_header|pass_header|next_upstream\w*|ssl_(?:server_name|name|verify|verify_depth|protocols|ciphers|session_reuse))|fastcgi_buffers|fastcgi_buffer_size|large_client_header_buffers|add_header|add_trailer|expires|etag|charset|charset_types|gzip\w*|brotli\w*|sub_filter\w*|access_log|error_log|log_not_found|sendfile|tcp_nodelay|tcp_nopush|limit_rate\w*|chunked_transfer_encoding|http2_\w+|ssl_(?:protocols|ciphers|prefer_server_ciphers|session_\w+|stapling\w*|ecdh_curve|dhparam|buffer_size))$/;

/** Request headers that the gateway sets too. */
const FIELDS =
  /^(?:host|upgrade|connection|x-real-ip|x-forwarded-(?:for|proto|host|port|scheme|ssl|server)|accept-encoding|range|if-range)$/i;

/** Backslashes only where nginx leaves them in the text, as in regular expressions: before none of `;{}"'\nrt`. */
const TOKEN =
  /\s+|#[^\n]*|"(?:[^"\\]|\\[\s\S])*"(?=[\s;{]|$)|'(?:[^'\\]|\\[\s\S])*'(?=[\s;{]|$)|[;{}]|(?:[^\s;{}"'#\\]|\$\{\w+\}|\\[^\s;{}"'\\nrt])(?:[^\s;{}\\]|(?<=\$)\{\w+\}|\\[^\s;{}"'\\nrt])*/y;

const MAX_DEPTH = 8;

/** Null for a text that could mean something else to nginx. */
export function parseDirectives(text: string): readonly Directive[] | null {
  const tokens = tokensOf(text);
  if (tokens === null) return null;
  const { directives, next } = readBlock(tokens, 0, 0);
  return next === tokens.length ? directives : null;
}

function tokensOf(text: string): readonly string[] | null {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return null;
    if (!/^[\s#]/.test(token)) tokens.push(token);
  }
  return tokens;
}

interface Block {
  readonly directives: readonly Directive[] | null;
  /** Index of the token that ends it. */
  readonly next: number;
}

const INVALID: Block = { directives: null, next: -1 };

function readBlock(tokens: readonly string[], from: number, depth: number): Block {
  const directives: Directive[] = [];
  let words: string[] = [];
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at] ?? "";
    const [name, ...args] = words;
    if (token === "}") return words.length > 0 ? INVALID : { directives, next: at };
    if (token === ";" && name !== undefined) directives.push({ name, args, block: null });
    else if (token === "{" && name !== undefined && depth < MAX_DEPTH) {
      const inner = readBlock(tokens, at + 1, depth + 1);
      if (inner.directives === null || tokens[inner.next] !== "}") return INVALID;
      directives.push({ name, args, block: inner.directives });
      at = inner.next;
    } else if (token === ";" || token === "{") return INVALID;
    else {
      words.push(unquoted(token));
      continue;
    }
    words = [];
  }
  const [name, ...args] = words;
  // The template of the source ends the last line.
  if (name !== undefined) directives.push({ name, args, block: null });
  return { directives, next: tokens.length };
}

const unquoted = (token: string): string =>
  /^["']/.test(token) ? token.slice(1, -1).replaceAll(/\\(["'\\])/g, "$1") : token;

/** False only for known harmless directives without blocks. */
export const mayDenyAccess = (text: string): boolean =>
  parseDirectives(text)?.every(isHarmless) !== true;

export function isHarmless({ name, args: [field = ""], block }: Directive): boolean {
  if (block !== null) return false;
  return name === "proxy_set_header" ? FIELDS.test(field) : HARMLESS.test(name);
}
