// Finds custom nginx directives that may deny access; knows no host.

/** Limits, timeouts and transfer options. Every other directive may deny access or identify the client. */
const HARMLESS =
  /^(?:client_(?:max_body_size|body_(?:buffer_size|timeout|temp_path|in_(?:file_only|single_buffer))|header_\w+)|(?:send|keepalive|resolver)_timeout|keepalive_(?:requests|time)|proxy_(?:connect_timeout|read_timeout|send_timeout|buffering|buffers|buffer_size|busy_buffers_size|max_temp_file_size|temp_file_write_size|request_buffering|http_version|redirect|socket_keepalive|force_ranges|limit_rate|cookie_path|cookie_domain|hide_header|pass_header|next_upstream\w*|ssl_(?:server_name|name|verify|verify_depth|protocols|ciphers|session_reuse))|fastcgi_buffers|fastcgi_buffer_size|large_client_header_buffers|add_header|add_trailer|expires|etag|charset|charset_types|gzip\w*|brotli\w*|sub_filter\w*|access_log|error_log|log_not_found|sendfile|tcp_nodelay|tcp_nopush|limit_rate\w*|chunked_transfer_encoding|http2_\w+|ssl_(?:protocols|ciphers|prefer_server_ciphers|session_\w+|stapling\w*|ecdh_curve|dhparam|buffer_size))$/;

/** Request headers that the gateway sets too. */
const FIELDS =
  /^(?:host|upgrade|connection|x-real-ip|x-forwarded-(?:for|proto|host|port|scheme|ssl|server)|accept-encoding|range|if-range)$/i;

const TOKEN = /\s+|#[^\n]*|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|;|[^\s;]+/g;

/** False only for known harmless directives without blocks. */
export function mayDenyAccess(text: string): boolean {
  const words: string[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^[\s#]/.test(token)) continue;
    // Blocks, escapes and unterminated strings: the rest cannot be parsed.
    if (!/^(?:["'][\s\S]*["']|[^"'{}\\][^{}\\]*)$/.test(token)) return true;
    if (token !== ";") words.push(token);
    else if (!isHarmless(words.splice(0))) return true;
  }
  return !isHarmless(words);
}

function isHarmless([name, field = ""]: readonly string[]): boolean {
  if (name === undefined) return true;
  return name === "proxy_set_header" ? FIELDS.test(field) : HARMLESS.test(name);
}
