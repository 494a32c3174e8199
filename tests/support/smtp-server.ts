// An SMTP server on a real socket that accepts mails, rejects on demand, and can be silent or encrypt.
import net from "node:net";
import tls from "node:tls";

export interface SmtpOptions {
  /** Encrypts after STARTTLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The only user and password; absent: no authentication. */
  readonly login?: { readonly username: string; readonly password: string };
  /** Accepts connections and sends nothing. */
  readonly isSilent?: boolean;
  /** Waits for as long before each reply. Default 0. */
  readonly pauseMs?: number;
}

export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  /** Head and body as received. */
  readonly text: string;
  /** Whether the connection was encrypted when it came. */
  readonly isEncrypted: boolean;
  readonly user: string | null;
}

export interface SmtpServer {
  readonly port: number;
  readonly mails: Mail[];
  readonly connections: number;
  /** The reply to each mail; default: accepted. */
  answer: string;
  stop(): void;
}

export async function startSmtpServer(options: SmtpOptions = {}): Promise<SmtpServer> {
  const sockets = new Set<net.Socket>();
  const mails: Mail[] = [];
  let connections = 0;
  const server = net.createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => undefined);
    if (options.isSilent) return;
    socket.write("220 test ESMTP\r\n");
    converse(socket, { options, isEncrypted: false, keep: (mail) => mails.push(mail), state });
  });
  const state = { answer: "250 taken" };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    mails,
    get connections() {
      return connections;
    },
    get answer() {
      return state.answer;
    },
    set answer(text) {
      state.answer = text;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

interface Scene {
  readonly options: SmtpOptions;
  readonly isEncrypted: boolean;
  readonly keep: (mail: Mail) => void;
  readonly state: { answer: string };
}

function converse(socket: net.Socket, scene: Scene): void {
  const { options, isEncrypted, state } = scene;
  let pending = "";
  let data: string | null = null;
  let from = "";
  let to: string[] = [];
  let user: string | null = null;
  const { pauseMs = 0 } = options;
  const say = (text: string) => {
    const write = () => void socket.write(`${text}\r\n`);
    if (pauseMs === 0) write();
    else setTimeout(write, pauseMs);
  };
  const command = (line: string) => {
    const [word = "", rest = ""] = line.split(/ (.*)/s);
    switch (word.toUpperCase()) {
      case "EHLO":
        say(
          [
            "250-test",
            ...(options.tls !== undefined && !isEncrypted ? ["250-STARTTLS"] : []),
            ...(options.login === undefined ? [] : ["250-AUTH PLAIN"]),
            "250 8BITMIME",
          ].join("\r\n"),
        );
        break;
      case "STARTTLS": {
        say("220 go on");
        socket.removeListener("data", read);
        const secure = new tls.TLSSocket(socket, { isServer: true, ...options.tls });
        secure.on("error", () => undefined);
        converse(secure, { ...scene, isEncrypted: true });
        break;
      }
      case "AUTH": {
        const [, name, password] = Buffer.from(rest.split(" ")[1] ?? "", "base64")
          .toString()
          .split("\0");
        const isRight = name === options.login?.username && password === options.login?.password;
        user = isRight ? (name ?? null) : null;
        // The reply repeats the credentials: the gateway must not show them.
        say(isRight ? "235 welcome" : `535 no such user with ${password}`);
        break;
      }
      case "MAIL":
        if (options.login !== undefined && user === null) return say("530 sign in first");
        [from, to] = [/<(.*?)>/.exec(rest)?.[1] ?? "", []];
        say("250 ok");
        break;
      case "RCPT":
        to.push(/<(.*?)>/.exec(rest)?.[1] ?? "");
        say("250 ok");
        break;
      case "DATA":
        data = "";
        say("354 go on");
        break;
      case "QUIT":
        say("221 bye");
        socket.end();
        break;
      default:
        say("250 ok");
    }
    return true;
  };
  const read = (chunk: Buffer) => {
    pending += chunk.toString();
    for (let end = pending.indexOf("\r\n"); end >= 0; end = pending.indexOf("\r\n")) {
      const line = pending.slice(0, end);
      pending = pending.slice(end + 2);
      if (data === null) command(line);
      else if (line !== ".") data += `${line}\n`;
      else {
        if (state.answer.startsWith("250")) scene.keep({ from, to, text: data, isEncrypted, user });
        data = null;
        say(state.answer);
      }
    }
  };
  socket.on("data", read);
}
