// What keeps people from signing in with a password, or makes it unsafe; changes nothing.
import type { ApplicationInput } from "../model/application.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";

/** Whether a group has a user with a password; looks through the consumers once for each group. */
export function userLookup({
  consumers,
  credentials,
}: Pick<GatewayConfig, "consumers" | "credentials">): (group: string) => boolean {
  const known = new Map<string, boolean>();
  return (group) => {
    const found = known.get(group) ?? hasUser(group);
    known.set(group, found);
    return found;
  };
  function hasUser(group: string): boolean {
    const ids = new Set<string>();
    for (const { id, enabled, groups } of consumers.values())
      if (enabled && groups.includes(group)) ids.add(id);
    if (ids.size === 0) return false;
    return credentials
      .values()
      .some(({ type, enabled, consumer_id: id }) => type === "basic" && enabled && ids.has(id));
  }
}

export function loginWarnings(
  { name, https, policies: { login } }: ApplicationInput,
  hasUsers: (group: string) => boolean,
): string[] {
  if (login === null) return [];
  const { group } = login;
  return [
    ...(hasUsers(group)
      ? []
      : [
          `application "${name}" rejects every login: no consumer of the group "${group}" has a credential of the type basic`,
        ]),
    ...(https.mode === "off"
      ? [`application "${name}" has no HTTPS: anyone on the network path can read its passwords`]
      : []),
  ];
}
