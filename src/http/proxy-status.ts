// Formats Proxy-Status (RFC 9209); knows nothing of the causes of errors.

/** Error types of RFC 9209 2.3. */
export type ProxyStatusError =
  | "dns_timeout"
  | "dns_error"
  | "destination_not_found"
  | "destination_unavailable"
  | "destination_ip_prohibited"
  | "destination_ip_unroutable"
  | "connection_refused"
  | "connection_terminated"
  | "connection_timeout"
  | "connection_read_timeout"
  | "connection_write_timeout"
  | "connection_limit_reached"
  | "tls_protocol_error"
  | "tls_certificate_error"
  | "tls_alert_received"
  | "http_request_error"
  | "http_request_denied"
  | "http_response_incomplete"
  | "http_response_header_section_size"
  | "http_response_header_size"
  | "http_response_body_size"
  | "http_response_trailer_section_size"
  | "http_response_trailer_size"
  | "http_response_transfer_coding"
  | "http_response_content_coding"
  | "http_response_timeout"
  | "http_upgrade_failed"
  | "http_protocol_error"
  | "proxy_internal_response"
  | "proxy_internal_error"
  | "proxy_configuration_error"
  | "proxy_loop_detected";

/** The value of a Proxy-Status field (RFC 9209 2): the proxy's name, the error type, and details for people when given. */
export function proxyStatus(error: ProxyStatusError, details?: string): string {
  const member = `sluice; error=${error}`;
  return details === undefined ? member : `${member}; details=${structuredString(details)}`;
}

/** A structured-field string (RFC 8941 3.3.3): printable ASCII in quotes; anything else would end or split the field, so it becomes `?`. */
function structuredString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&")}"`;
}
