// Asks the data plane what it serves where, over fresh connections; knows no management API.
import { QuickConnection, type QuickReply } from "../../support/quick-http.ts";
import { addressOf, type Outcome } from "./world.ts";

/** Origins that respond with their own port. */
export function startOrigins(count: number): { ports: number[]; stop(): void } {
  const servers = Array.from({ length: count }, () =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (_, server) => new Response(String(server.port)),
    }),
  );
  return {
    ports: servers.map(({ port }) => port!),
    stop() {
      for (const server of servers) void server.stop(true);
    },
  };
}

/** Whether an answer is what may be had at its address. */
function fits(reply: QuickReply, outcome: Outcome): boolean {
  if (typeof outcome === "number") return reply.status === outcome;
  return reply.status === 200 && outcome.includes(Number(reply.body));
}

/** Asks for every address on each of `count` fresh connections at once; passes on every response. */
export async function probe(
  port: number,
  expected: ReadonlyMap<string, Outcome>,
  { count, each }: { count: number; each: (reply: QuickReply, what: string) => void },
): Promise<void> {
  const wrong: string[] = [];
  const ask = async () => {
    const connection = await QuickConnection.open(port);
    for (const [text, outcome] of expected) {
      const { host, path } = addressOf(text);
      const reply = await connection.get(path, host);
      each(reply, text);
      if (!fits(reply, outcome))
        wrong.push(
          `${text}: expected ${outcome}, got ${reply.status} ${reply.body}\n${reply.head}`,
        );
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: count }, ask));
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong answers, the first: ${wrong[0]}`);
}
