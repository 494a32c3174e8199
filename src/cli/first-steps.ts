// The first requests of a newcomer, which `make run` asks for: to what the gateway serves, and nothing else.
import type { Listener } from "../model/listener.ts";
import { formatAddress } from "./flags.ts";

/** `management`: URL of the management API. `listeners`: those that listen. */
export function firstSteps(
  management: string,
  listeners: readonly Pick<Listener, "protocol" | "address" | "port">[],
): string {
  const urls = listeners.map(({ protocol, address, port }) => {
    const hostname = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
    return `${protocol}://${formatAddress({ hostname, port })}`;
  });
  const plain = urls.find((url) => url.startsWith("http:"));
  const sites = urls.length === 0 ? "No site is served." : `Sites are on ${urls.join(" and ")}.`;
  return `
${sites} In a browser, ${management} has the web UI,
and ${management}/docs the reference of the management API. Or in another terminal, with an application on
port 3000 (none at hand? \`python3 -m http.server 3000 --bind 127.0.0.1\`):

  curl ${management}/api/v1/services -H 'content-type: application/json' \\
    -d '{"name":"hello","targets":[{"host":"127.0.0.1","port":3000}]}'

  curl ${management}/api/v1/routes -H 'content-type: application/json' \\
    -d '{"name":"hello","service_id":"hello","hosts":["hello.localhost"]}'
${plain === undefined ? "" : `\n  curl -i ${plain}/ -H 'Host: hello.localhost'\n`}
Ctrl+C stops the gateway; what was configured stays in the data directory.

`;
}
