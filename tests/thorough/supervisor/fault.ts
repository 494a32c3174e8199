// How a test sets where a worker fails: in the name of a service, `worker 0 throw at prepare`.

const places = ["start", "take", "prepare", "activate", "serve"] as const;
const kinds = ["reject", "throw", "exit", "wait", "loop", "slow"] as const;

export interface Fault {
  readonly worker: number;
  /**
   * `start` fails in every new thread, the other ones only in the thread that prepares a change. `slow`: each piece takes its
   * time, without a heartbeat meanwhile. `loop`: the thread does nothing else any more.
   */
  readonly place: (typeof places)[number];
  readonly kind: (typeof kinds)[number];
}

export const faultName = ({ worker, kind, place }: Fault) => `worker ${worker} ${kind} at ${place}`;

export function readFault(name: string): Fault | null {
  const match = /^worker (\d+) (\w+) at (\w+)$/.exec(name);
  if (match === null) return null;
  const kind = kinds.find((word) => word === match[2]);
  const place = places.find((word) => word === match[3]);
  if (kind === undefined || place === undefined) throw new Error(`no such fault: ${name}`);
  return { worker: Number(match[1]), kind, place };
}
