// Why a server of shared counters cannot be used, in words: Bun's client says only that the connection was closed.
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { CountersAddress } from "./address.ts";

/** Words for the starts of Redis' error replies. */
const refusals: readonly (readonly [RegExp, string])[] = [
  [/^WRONGPASS/, "wrong user or password"],
  [/^NOAUTH/, "a password is required: --counters-password-file, or the URL in SLUICE_COUNTERS"],
  [/^ERR .*without any password configured/, "a password was given, but the server has none"],
  [/^ERR DB index/, "there is no such database: the number at the end of the URL is too high"],
  [/^DENIED/, "the server is in protected mode and refuses other machines"],
];

const encoded = (words: readonly string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;

/** The first problem that the server itself states, else the one that the client had; never with the password. Never rejects. */
export const whyNot = async (
  address: CountersAddress,
  error: Error & { code?: string },
  timeoutMs: number,
): Promise<string> =>
  error.code === "ERR_REDIS_SERVER_ERROR"
    ? inWords(error.message)
    : await diagnose(address, error, timeoutMs).catch(() => error.message);

async function diagnose(
  { url, ca, cert, key }: CountersAddress,
  error: Error,
  timeoutMs: number,
): Promise<string> {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const to = { host, port: port === "" ? 6379 : Number(port) };
  const files = Object.entries({ ca, cert, key }).filter(([, text]) => text !== null);
  const isTls = /^(?:rediss|valkeys):/.test(protocol);
  const socket = isTls
    ? connectTls({ ...to, ...Object.fromEntries(files), servername: isIP(host) === 0 ? host : "" })
    : connectPlain(to);
  const login =
    password === "" ? [] : [[decodeURIComponent(username), decodeURIComponent(password)]];
  const commands = [
    ...login.map((names) => ["AUTH", ...names.filter((name) => name !== "")]),
    ["SELECT", pathname.replace("/", "") || "0"],
    ["PING"],
  ];
  return await new Promise((resolve) => {
    const end = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(why);
    };
    socket.on("error", (problem: Error & { code?: string }) =>
      end(isTls || problem.code !== "ECONNRESET" ? ofSocket(problem) : CLOSED),
    );
    const late = isTls ? "no reply; does the server use TLS?" : "no reply";
    const timer = setTimeout(() => end(late), timeoutMs);
    socket.on("close", () => end(isTls ? "the connection was closed" : CLOSED));
    readReplies(socket, commands.length, (problem) =>
      end(problem === null ? error.message : inWords(problem)),
    );
    socket.write(commands.map(encoded).join(""));
  });
}

const CLOSED = "the connection was closed; a server that requires TLS needs rediss:// in the URL";

/** Calls `done` with the first error reply, or with null after `count` others. */
function readReplies(socket: Socket, count: number, done: (error: string | null) => void): void {
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    const lines = text.split("\r\n").slice(0, -1);
    const error = lines.find((line) => line.startsWith("-"));
    if (error !== undefined) done(error.slice(1));
    else if (lines.length >= count) done(null);
  });
}

const inWords = (reply: string) =>
  refusals.find(([pattern]) => pattern.test(reply))?.[1] ?? `the server replied: ${reply}`;

function ofSocket({ code = "", message }: Error & { code?: string }): string {
  if (code === "ECONNREFUSED") return "the connection was refused";
  if (code === "ENOTFOUND") return "its name has no address";
  if (/CERT|VERIFY|ALTNAME/.test(code))
    return `its certificate is not trusted (${message}); name its CA with ?ca=FILE in the URL`;
  return message;
}
