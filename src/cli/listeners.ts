// The command `listeners`: lists and changes listeners without the management API; knows neither the configuration nor sockets.
import type { ListenerChange, ListenerLine } from "../auth/recovery.ts";
import { suggestion } from "../model/suggestion.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import type { Command } from "./command.ts";
import { type Flag, type Flags, formatAddress, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  { name: "address", value: "ADDRESS", description: "For set: the IP address to listen on" },
  { name: "port", value: "PORT", description: "For set: the port to listen on" },
  outputFlag,
];

type Change = ListenerChange["change"];

const actions: Readonly<Record<string, (given: Flags) => Change>> = {
  set: placeOf,
  enable: () => ({ enabled: true }),
  disable: () => ({ enabled: false }),
  delete: () => null,
};
const words = ["list", ...Object.keys(actions)];

export function createListenersCommand(openOffline: OpenOffline): Command {
  return {
    name: "listeners",
    summary: "List and change listeners, also while the gateway is stopped",
    usage: "[list] | set|enable|disable|delete NAME",
    details:
      "list     shows each listener with its address, and whether the gateway listens there\n" +
      "set      changes --address, --port, or both\n" +
      "enable   makes it listen\n" +
      "disable  closes its port\n" +
      "delete   removes it\n" +
      "A change is a revision like any other. Run it on the machine of the data directory, as the user who owns the directory,\n" +
      "whether the gateway runs or not: while it is stopped, no port is tried.",
    flags,
    run(argv, { env, print }) {
      const at = argv.findIndex((word) => word.startsWith("--"));
      const [action = "list", name, ...more] = at === -1 ? argv : argv.slice(0, at);
      // Kubernetes sets SLUICE_PORT to a URL where a service has the name sluice.
      const variables = { ...env, SLUICE_ADDRESS: undefined, SLUICE_PORT: undefined };
      const given = parseFlags(flags, at === -1 ? [] : argv.slice(at), variables);
      const show = resultPrinter(given, print);
      const change = changeOf(action, { name, given, more });
      return runLocally(openOffline, given, {
        call: () => Promise.resolve({ operation: "changeListener", input: change }),
        show: ({ listeners, revision }) => {
          show({ listeners, revision }, listeners.map(lineOf).join(""));
          if (change.name !== null) process.stderr.write(`This is revision ${revision} now.\n`);
        },
      });
    },
  };
}

interface Words {
  readonly name: string | undefined;
  readonly given: Flags;
  readonly more: readonly string[];
}

function changeOf(action: string, { name, given, more }: Words): ListenerChange {
  const [unexpected] = action === "list" && name !== undefined ? [name] : more;
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}"`);
  if (action === "list") return { name: null, change: null };
  const make = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (make === undefined)
    throw new UsageError(`"${action}" is none of ${words.join(", ")}${suggestion(action, words)}`);
  if (name === undefined)
    throw new UsageError(
      `name the listener: sluice listeners ${action} NAME; without words the command lists them`,
    );
  return { name, change: make(given) };
}

function placeOf(given: Flags): Change {
  const [address, port] = [given.get("address"), given.get("port")];
  if (address === undefined && port === undefined)
    throw new UsageError("set needs --address, --port or both");
  if (port !== undefined && !/^\d{1,5}$/.test(port))
    throw new UsageError(`--port: must be a number from 1 to 65535, not "${port}"`);
  return {
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port: Number(port) }),
  };
}

function lineOf({ name, protocol, address, port, state }: ListenerLine): string {
  return `${name}  ${protocol}://${formatAddress({ hostname: address, port })}  ${state}\n`;
}
