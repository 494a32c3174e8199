// What the import does with each directive: converts it, reports a reason, ignores it, or takes it for a denial; knows no route.

/** Read by the other files of this folder. */
const CONVERTED = new Set([
  ...["server", "location", "listen", "server_name", "upstream", "map", "http2", "ssl", "include"],
  ...[
    "proxy_pass",
    "proxy_redirect",
    "proxy_set_header",
    "proxy_hide_header",
    "add_header",
    "return",
    "rewrite",
    "set",
  ],
  ...["allow", "deny", "satisfy", "auth_basic", "auth_basic_user_file", "auth_request"],
  ...["auth_request_set", "limit_req", "limit_req_zone", "limit_req_status", "limit_conn"],
  ...["limit_conn_zone", "limit_except", "internal", "if", "try_files", "client_max_body_size"],
  ...["proxy_read_timeout", "proxy_send_timeout", "proxy_connect_timeout", "default_type"],
  ...[
    "gzip",
    "gzip_types",
    "gzip_min_length",
    "gzip_comp_level",
    "proxy_cache",
    "proxy_cache_valid",
  ],
  ...["ssl_certificate", "ssl_certificate_key", "set_real_ip_from", "real_ip_header"],
  ...["proxy_ssl_verify", "proxy_ssl_name", "proxy_ssl_trusted_certificate", "ssl_verify_client"],
  ...["root", "alias", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass"],
  ...["stub_status", "dav_methods", "empty_gif", "merge_slashes", "proxy_intercept_errors"],
]);

/** Content that the gateway cannot serve, with its name in the report. */
export const FOREIGN_CONTENT: Readonly<Record<string, string>> = {
  fastcgi_pass: "FastCGI",
  uwsgi_pass: "uwsgi",
  scgi_pass: "SCGI",
  grpc_pass: "gRPC: add a service with the protocol grpc or grpcs",
  memcached_pass: "memcached",
  stub_status: "the status of nginx: the management API serves metrics",
  dav_methods: "WebDAV",
  empty_gif: "an empty image",
};

/** Directives that have another place in the gateway. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  access_log: "use the plugin access-log",
  error_log: "the gateway writes its own log",
  error_page: "use the plugin error-pages; redirects to a login are not imported",
  ssl_protocols: "set tls_min_version of the listener: TLS 1.2 and 1.3 are supported",
  ssl_password_file: "upload the certificate with a key that is not encrypted",
  proxy_cookie_path: "cookies of responses are not changed",
  proxy_cookie_domain: "cookies of responses are not changed",
  proxy_ssl_certificate: "set tls.client_certificate_id of the service",
  proxy_ssl_certificate_key: "set tls.client_certificate_id of the service",
  proxy_bind: "the operating system selects the address",
  proxy_method: "use the plugin transform",
  proxy_cache_path: "set max_total and storage of the plugin response-cache",
  proxy_cache_key: "the plugin response-cache has its own key",
  proxy_cache_bypass: "set when of the plugin response-cache",
  proxy_no_cache: "set when of the plugin response-cache",
  proxy_cache_use_stale: "set stale_if_error of the plugin response-cache",
  proxy_ignore_headers: "set respect_cache_control of the plugin response-cache",
  proxy_next_upstream: "the service's retries decide",
  proxy_next_upstream_tries: "set retries of the service",
  proxy_next_upstream_timeout: "set retries of the service",
  sub_filter: "use body_replace of the plugin transform",
  expires: "use the plugin transform to set Cache-Control",
  mirror: "use the plugin mirror",
  limit_rate: "use the plugin bandwidth-limit",
  limit_rate_after: "use the plugin bandwidth-limit",
  more_set_headers: "use the plugin transform",
  more_clear_headers: "use the plugin transform",
  add_trailer: "use the plugin transform",
  split_clients: "use the plugin traffic-split",
  underscores_in_headers: "headers with underscores reach the targets as sent",
  large_client_header_buffers: "set max_header_bytes of the listener",
  keepalive_timeout: "set idle_timeout of the listener",
  client_body_timeout: "set body_min_rate of the listener",
  client_header_timeout: "set the timeouts of the settings",
};

/** Settings of nginx's own operation: they deny nothing, and the gateway needs none of them. */
const HARMLESS =
  /^(?:sendfile\w*|tcp_\w+|types(?:_\w+)?|charset\w*|server_tokens|server_names_\w+|server_name_in_redirect|port_in_redirect|absolute_redirect|map_hash_\w+|variables_hash_\w+|gzip\w*|brotli\w*|zstd\w*|gunzip\w*|ssl_(?:ciphers|prefer_server_ciphers|session_\w+|stapling\w*|ecdh_curve|dhparam|buffer_size|conf_command|early_data|trusted_certificate|verify_depth|reject_handshake|crl|client_certificate)|resolver\w*|log_format|log_not_found|log_subrequest|open_log_file_cache|open_file_cache\w*|keepalive_\w+|reset_timedout_connection|send_timeout|send_lowat|lingering_\w+|client_(?:body_\w+|header_\w+)|connection_pool_size|request_pool_size|output_buffers|postpone_output|directio\w*|aio\w*|read_ahead|etag|if_modified_since|max_ranges|chunked_transfer_encoding|recursive_error_pages|ignore_invalid_headers|index|autoindex\w*|access_log|proxy_(?:http_version|buffering|buffers|buffer_size|busy_buffers_size|max_temp_file_size|temp_\w+|request_buffering|redirect|socket_keepalive|force_ranges|limit_rate|pass_header|pass_request_headers|pass_request_body|ignore_client_abort|headers_hash_\w+|cache_\w+|ssl_\w+|store\w*|next_upstream\w*|cookie_\w+)|fastcgi_(?!pass$)\w+|uwsgi_(?!pass$)\w+|scgi_(?!pass$)\w+|grpc_(?!pass$)\w+|sub_filter\w*|http2_\w+|http3\w*|quic_\w+|real_ip_recursive|limit_(?:req|conn)_(?:log_level|dry_run)|limit_zone|pcre_jit|geo|geoip\w*|geoip2\w*|vhost_traffic_\w+|status_zone|msie_\w+|rewrite_log|uninitialized_variable_warn|break|default_type|satisfy|disable_symlinks|min_delete_depth|create_full_put_path|dav_access|subrequest_output_buffer_size|(?:init|init_worker|exit_worker|log|header_filter|body_filter)_by_lua\w*|lua_\w+|js_(?:import|path|var|set|preload_object|header_filter|body_filter)|image_filter\w*|ssi\w*|userid\w*|fancyindex\w*|secure_link\w*|auth_delay|slice|perl_modules|perl_require|opentracing\w*|otel_\w+|ssl_certificate_by_lua\w*)$/;

export type DirectiveKind = "converted" | "elsewhere" | "harmless" | "unknown";

/** Unknown directives may deny access. */
export function kindOf(name: string): DirectiveKind {
  if (CONVERTED.has(name)) return "converted";
  if (Object.hasOwn(ELSEWHERE, name)) return "elsewhere";
  return HARMLESS.test(name) ? "harmless" : "unknown";
}

export const elsewhere = (name: string): string => ELSEWHERE[name] ?? "";

/** Includes whose content is known to deny nothing. */
const KNOWN_FILES =
  /(?:^|\/)(?:mime\.types|(?:fastcgi|uwsgi|scgi)_params|fastcgi\.conf|options-ssl-nginx\.conf|koi-utf|koi-win|win-utf)$|(?:^|\/)modules-enabled\/\*\.conf$|(?:^|\/)modules\/\*\.conf$/;

export const isHarmlessInclude = (path: string): boolean => KNOWN_FILES.test(path);

/** Debian's `proxy_params`, which many files include. */
export const isProxyParams = (path: string): boolean => /(?:^|\/)proxy_params$/.test(path);
