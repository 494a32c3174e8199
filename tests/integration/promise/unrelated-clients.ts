// Clients of a route that nobody changes: they never stop asking, and note everything that is not as it should be.
import { QuickConnection, quickGet, type QuickReply } from "../../support/quick-http.ts";

export interface UnrelatedClients {
  readonly answers: number;
  /** Everything that went wrong, in words. */
  readonly failures: readonly string[];
  /** Lets every request in flight end. */
  stop(): Promise<void>;
}

const at = { path: "/steady/page", host: "steady.test" };

/** Asks over kept and over fresh connections, plain and TLS; a kept connection must stay open. */
export function startUnrelatedClients(
  ports: { readonly http: number; readonly https: number },
  body: string,
): UnrelatedClients {
  const failures: string[] = [];
  let answers = 0;
  let isRunning = true;
  const check = (who: string, { status, body: got }: QuickReply) => {
    answers++;
    if (status !== 200 || got !== body) failures.push(`${who}: ${status} ${got.slice(0, 200)}`);
  };
  const repeat = async (who: string, ask: () => Promise<QuickReply>) => {
    while (isRunning) {
      await ask().then(
        (reply) => check(who, reply),
        (error: Error) => failures.push(`${who}: ${error.message}`),
      );
      if (failures.length > 20) return;
    }
  };
  const kept = async (who: string, port: number, tls: boolean) => {
    const connection = await QuickConnection.open(port, { tls });
    await repeat(who, () => connection.get(at.path, at.host));
    connection.close();
  };
  const running = Promise.all([
    kept("kept connection", ports.http, false),
    kept("second kept connection", ports.http, false),
    kept("kept TLS connection", ports.https, true),
    repeat("fresh connection", () => quickGet(ports.http, at)),
    repeat("fresh TLS connection", () => quickGet(ports.https, { ...at, tls: true })),
  ]);
  return {
    get answers() {
      return answers;
    },
    failures,
    async stop() {
      isRunning = false;
      await running;
    },
  };
}
