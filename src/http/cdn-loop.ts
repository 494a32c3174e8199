// CDN-Loop (RFC 8586): a gateway recognizes requests that it has proxied before by its token; knows no request.

/** The token of the gateway with this instance id. */
export const loopToken = (instanceId: string) => `sluice-${instanceId}`;

/** Whether a CDN-Loop value holds the token as a member; parameters do not count. */
export function namesLoop(value: string, token: string): boolean {
  return value.split(",").some((member) => (member.split(";")[0] ?? "").trim() === token);
}
