// Disables stream routes of an imported file whose port another program holds: they must not fail the whole import.
import type { StreamRoute } from "../model/stream-route.ts";
import { probePort } from "../supervisor/port-probe.ts";
import type { Draft } from "./draft.ts";

export interface DisabledStream {
  readonly name: string;
  /** `port 53 on 0.0.0.0: address already in use by dnsmasq` */
  readonly problem: string;
}

/** Looks at routes that did not listen on their ports before. `refused`: known problems, by name. */
export async function disableBusyStreams(
  draft: Draft,
  refused: ReadonlyMap<string, string>,
): Promise<readonly DisabledStream[]> {
  const disabled: DisabledStream[] = [];
  for (const route of [...draft.config.stream_routes.values()]) {
    if (!route.enabled || isListening(route, draft.base.stream_routes.get(route.id))) continue;
    const problem = refused.get(route.name) ?? (await problemOf(route));
    if (problem === null) continue;
    draft.put("stream_routes", { ...route, enabled: false });
    disabled.push({ name: route.name, problem });
  }
  return disabled;
}

/** The route that a change was refused for, because it cannot listen. */
export function refusedStreamIn(message: string): DisabledStream | null {
  const [, name, problem] =
    /stream route "([^"]+)": ((?:UDP )?port \d+ on .*)$/s.exec(message) ?? [];
  return name === undefined || problem === undefined ? null : { name, problem };
}

const placeOf = ({ listen_address, listen_port, port_range, protocol, enabled }: StreamRoute) =>
  JSON.stringify([listen_address, listen_port, port_range, protocol, enabled]);

const isListening = (route: StreamRoute, old: StreamRoute | undefined) =>
  old !== undefined && placeOf(old) === placeOf(route);

async function problemOf(route: StreamRoute): Promise<string | null> {
  const { listen_port: port, port_range: range, listen_address: address, protocol } = route;
  const [first = 0, last = 0] = (range ?? `${port}-${port}`).split("-").map(Number);
  for (let each = first; each <= last; each++) {
    const issue = await probePort({ address, port: each, transport: protocol, owner: "" });
    if (issue !== null) return issue.message.replace(/^: /, "");
  }
  return null;
}
