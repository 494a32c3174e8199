// The protocols that clients name in Upgrade (RFC 9110 section 7.8); knows no request.

const PROTOCOL = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$/;

/** Whether it is a name, with a version behind a slash or without. */
export const isUpgradeProtocol = (text: string): boolean => PROTOCOL.test(text);

/** More requests would follow, past routes and plugins. */
export const carriesHttp = (protocol: string): boolean =>
  /^(?:h2c?|http|tls)(?:\/|$)/i.test(protocol);

/** Why a route cannot let it pass; null: it can. */
export const upgradeProtocolProblem = (protocol: string): string | null =>
  isUpgradeProtocol(protocol)
    ? carriesHttp(protocol)
      ? "carries HTTP, whose requests would pass by routes and plugins: leave it out"
      : null
    : "must be a token of Upgrade, such as websocket or tcp, with a version after a slash if need be";

/** The items of the field. */
export const protocolsIn = (value: string): string[] => value.split(",").map((name) => name.trim());
