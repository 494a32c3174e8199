// Measures whether the time of a refused login reveals existing users: `bun tests/bench/sign-in-timing.ts [ROUNDS]`. No test.
import { startGateway } from "../support/gateway.ts";

const rounds = Number(process.argv[2] ?? 200);
/** The throttle would end the measurement: each round has a gateway's worth of accounts, and restarts come in between. */
const ROUNDS_OF_ONE_START = 3;

const password = "correct horse battery";
const gateway = await startGateway({ workers: 1 });
await gateway.ok("POST", "/api/v1/users", {
  email: "root@a.example",
  name: "Root",
  role: "admin",
  password,
});
const login = (email: string, given: string) =>
  gateway.api("POST", "/api/v1/auth/login", { email, password: given });
const cookie = (await login("root@a.example", password)).headers.getSetCookie()[0] ?? "";
const asRoot = { cookie: cookie.split(";")[0] ?? "" };
const others = [
  { email: "off@a.example", name: "Off", role: "viewer", enabled: false, password },
  { email: "sso@a.example", name: "Sso", role: "viewer" },
];
for (const user of others) await gateway.api("POST", "/api/v1/users", user, asRoot);

const cases: Record<string, { email: string; password: string; times: number[] }> = {
  "wrong password": { email: "root@a.example", password: "wrong horse battery", times: [] },
  "unknown user": { email: "nobody@a.example", password, times: [] },
  "disabled user": { email: "off@a.example", password, times: [] },
  "user without password": { email: "sso@a.example", password, times: [] },
};

for (let round = 0; round < rounds; round++) {
  if (round % (ROUNDS_OF_ONE_START - 1) === 0) await gateway.restart();
  // In another order each time, so that what comes first has no advantage.
  for (const one of Object.values(cases).toSorted(() => Math.random() - 0.5)) {
    const begin = Bun.nanoseconds();
    const { status } = await login(one.email, one.password);
    if (status !== 401) throw new Error(`${one.email}: ${status}`);
    one.times.push((Bun.nanoseconds() - begin) / 1e6);
  }
}
await gateway.stop();

const percentile = (times: readonly number[], part: number) =>
  (times[Math.floor((times.length - 1) * part)] ?? 0).toFixed(2).padStart(8);
process.stdout.write(`milliseconds over ${rounds} rounds     p10     p50     p90\n`);
for (const [name, { times }] of Object.entries(cases)) {
  const sorted = times.toSorted((a, b) => a - b);
  const columns = [0.1, 0.5, 0.9].map((part) => percentile(sorted, part));
  process.stdout.write(`${name.padEnd(28)}${columns.join("")}\n`);
}
