// A target whose connections are signed in by NTLM, as those of IIS are.
import type { Socket } from "bun";

/** MS-NLMP section 2.2.1.2, with nothing in it. */
const CHALLENGE = (() => {
  const message = Buffer.alloc(40);
  message.write("NTLMSSP\0", "latin1");
  message[8] = 2;
  message[16] = 40;
  return message.toString("base64");
})();

interface Account {
  isAsked: boolean;
  isSignedIn: boolean;
  text: string;
}

/** Signs connections in as IIS does: type 1, a challenge on the same connection, type 3. */
export function startNtlmTarget() {
  const open = new Set<Socket<Account>>();
  const server = Bun.listen<Account>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { isAsked: false, isSignedIn: false, text: "" };
        open.add(socket);
      },
      close: (socket) => void open.delete(socket),
      data(socket, chunk) {
        socket.data.text += chunk.toString("latin1");
        const end = socket.data.text.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = socket.data.text.slice(0, end);
        socket.data.text = "";
        socket.write(responseTo(head, socket.data));
      },
    },
  });
  return {
    port: server.port,
    get signedIn() {
      return [...open].filter(({ data }) => data.isSignedIn).length;
    },
    stop: () => server.stop(true),
  };
}

/** `/challenge?status&lines`: a response with these; all else needs an account. */
function responseTo(head: string, account: Account): string {
  const [, path = "/"] = head.split(" ");
  if (path.startsWith("/challenge")) {
    const [status = "", lines = ""] = decodeURIComponent(path.slice(11)).split("&");
    return status.startsWith("chunked")
      ? `HTTP/1.1 401 \r\n${lines}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`
      : `HTTP/1.1 ${status} \r\n${lines}\r\nContent-Length: 3\r\n\r\nabc`;
  }
  const [, message = ""] = /^authorization: ntlm (\S+)/im.exec(head) ?? [];
  const type = Buffer.from(message, "base64")[8] ?? 0;
  if (type === 3 && account.isAsked) account.isSignedIn = true;
  if (account.isSignedIn) return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
  account.isAsked = type === 1;
  const scheme = account.isAsked ? `NTLM ${CHALLENGE}` : "NTLM";
  return `HTTP/1.1 401 \r\nWWW-Authenticate: ${scheme}\r\nContent-Length: 5\r\n\r\nlogin`;
}

/** The line by which a client sends message 1 or 3. */
export const signIn = (type: 1 | 3) => {
  const bytes = Buffer.alloc(12);
  bytes.write("NTLMSSP\0", "latin1");
  bytes[8] = type;
  return `Authorization: NTLM ${bytes.toString("base64")}\r\n`;
};
