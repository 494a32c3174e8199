// Challenges whose authentication holds for a connection, not for a request (NTLM, and RFC 4559's Negotiate); knows no connection.

/** RFC 9110 section 11.6.1: schemes and parameters share the commas. */
const QUOTED = /"(?:[^"\\]|\\.)*"/g;
const PARAMETER = /^[^\s=]+\s*=(?!=*$)/;
const BOUND = /^(?:ntlm|negotiate)(?:\s|$)/i;

/** Which challenges of a WWW-Authenticate or Proxy-Authenticate are for the connection. */
export function boundChallenges(value: string): "none" | "some" | "all" {
  let bound = 0;
  let others = 0;
  for (const item of value.replace(QUOTED, "").split(",")) {
    const challenge = item.trim();
    if (challenge === "" || PARAMETER.test(challenge)) continue;
    if (BOUND.test(challenge)) bound++;
    else others++;
  }
  if (bound === 0) return "none";
  return others === 0 ? "all" : "some";
}
