// Runs the commands of docs/recipes.md for what proxies often break: other upgrades, Windows authentication, devices, a sub path.
import { expect } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import type { Socket } from "bun";
import { needs } from "../support/needs.ts";
import { visit } from "../support/public-names.ts";
import { connectRaw } from "../support/raw-http.ts";
import { followRecipe, type RecipeGateway, startRecipeGateway } from "../support/recipes.ts";

const { afterAll, beforeAll, test } = needs("executable", "curl");

let scene: RecipeGateway;
const servers: { stop(): unknown }[] = [];
beforeAll(async () => {
  scene = await startRecipeGateway();
});
afterAll(async () => {
  await scene?.gateway.stop();
  for (const server of servers) server.stop();
});

interface Seen {
  text: string;
  /** A handshake has begun on the connection, or has ended. */
  state: "new" | "asked" | "signed in";
}

/** A target that answers each whole head with its body by hand; resolves with its URL. */
function startTarget(answer: (head: string, socket: Socket<Seen>) => string): string {
  const server = Bun.listen<Seen>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { text: "", state: "new" };
      },
      data(socket, bytes) {
        socket.data.text += bytes.toString("latin1");
        const end = socket.data.text.indexOf("\r\n\r\n");
        if (end < 0) return;
        // Firmware that compares bytes.
        const length = Number(/\r\nContent-Length: (\d+)\r\n/.exec(socket.data.text)?.[1] ?? 0);
        if (socket.data.text.length < end + 4 + length) return;
        const { text } = socket.data;
        socket.data.text = "";
        socket.write(answer(text, socket));
      },
    },
  });
  servers.push({ stop: () => server.stop(true) });
  return `127.0.0.1:${server.port}`;
}

const fetchFrom = (url: string, ...args: string[]) => visit(scene.gateway, url, args);

test("Headscale: a client upgrades a POST, a relay a GET, and nothing else does", async () => {
  const target = startTarget((head) => {
    const protocol = /\r\nUpgrade: (.*)\r\n/i.exec(head)?.[1];
    return protocol === undefined
      ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain"
      : `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n${head.endsWith("noise") ? "noise" : "relay"}`;
  });
  await followRecipe("Headscale", scene, { "10.0.0.41:8080": target });
  const port = scene.gateway.httpPort;
  const ask = async (method: string, protocol: string, body: string) => {
    const client = await connectRaw({ port });
    const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
    client.write(
      `${method} /ts2021 HTTP/1.1\r\nHost: headscale.example.com\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${length}\r\n${body}`,
    );
    await client.until(/noise|relay|plain/);
    client.close();
    return client.received;
  };
  const noise = await ask("POST", "tailscale-control-protocol", "noise");
  expect(noise).toStartWith("HTTP/1.1 101 ");
  expect(noise).toEndWith("\r\n\r\nnoise");
  expect(await ask("GET", "DERP", "")).toStartWith("HTTP/1.1 101 ");
  expect(await ask("GET", "tcp", "")).toStartWith("HTTP/1.1 200 ");
});

/** MS-NLMP section 2.2.1.2, with nothing in it. */
const CHALLENGE = Buffer.concat([Buffer.from("NTLMSSP\0\x02", "latin1"), Buffer.alloc(31)]);
CHALLENGE[16] = 40;

test("IIS: curl signs in with NTLM, and another client does not get its connection", async () => {
  const target = startTarget((head, { data }) => {
    const [, message = ""] = /^authorization: ntlm (\S+)/im.exec(head) ?? [];
    const type = Buffer.from(message, "base64")[8] ?? 0;
    if (type === 3 && data.state === "asked") data.state = "signed in";
    else if (type === 1) data.state = "asked";
    if (data.state === "signed in") return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
    const challenge = type === 1 ? ` ${CHALLENGE.toString("base64")}` : "";
    return `HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM${challenge}\r\nContent-Length: 5\r\n\r\nlogin`;
  });
  await followRecipe("IIS and Exchange with Windows authentication", scene, {
    "10.0.0.42:80": target,
  });
  const url = "https://intranet.example.com/";
  const signedIn = await fetchFrom(url, "--ntlm", "--user", "anna:secret");
  expect([signedIn.status, signedIn.text()]).toEqual([200, "secret"]);
  const stranger = await fetchFrom(url, "--http1.1");
  expect([stranger.status, stranger.text()]).toEqual([401, "login"]);
});

test("ESP devices: heads with bare LF, and a body that firmware finds by its field's bytes", async () => {
  const target = startTarget((head) => {
    const body = head.slice(head.indexOf("\r\n\r\n") + 4) || "state";
    return `HTTP/1.1 200 OK\nContent-Length: ${body.length}\n\n${body}\r\n`;
  });
  await followRecipe("ESP devices", scene, { "10.0.0.43:80": target });
  const url = "https://plug.example.com/cm";
  for (const version of ["--http1.1", "--http2"]) {
    const state = await fetchFrom(url, version);
    expect([version, state.status, state.text()]).toEqual([version, 200, "state"]);
    const posted = await fetchFrom(url, version, "--data", "cmnd=Power");
    expect([version, posted.status, posted.text()]).toEqual([version, 200, "cmnd=Power"]);
  }
});

/** What an S3 server verifies: it signs path and fields as it has received them (AWS Signature Version 4). */
function isSigned(head: string, secret: string): boolean {
  const [, method = "", target = ""] = /^(\S+) (\S+) /.exec(head) ?? [];
  const fieldOf = (name: string) =>
    new RegExp(`\\r\\n${name}: (.*)\\r\\n`, "i").exec(head)?.[1] ?? "";
  const [, scope = "", names = "", signature = ""] =
    /Credential=[^/]+\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)/.exec(
      fieldOf("authorization"),
    ) ?? [];
  const [path = "", query = ""] = target.split("?");
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) =>
    createHmac("sha256", key).update(text).digest();
  const fields = names.split(";").map((name) => `${name}:${fieldOf(name)}\n`);
  const body = fieldOf("x-amz-content-sha256") || sha256("");
  const request = [method, path, query, fields.join(""), names, body].join("\n");
  const text = ["AWS4-HMAC-SHA256", fieldOf("x-amz-date"), scope, sha256(request)].join("\n");
  const key = scope.split("/").reduce<string | Buffer>(hmac, `AWS4${secret}`);
  return hmac(key, text).toString("hex") === signature;
}

test("object stores: signatures of paths as curl has sent them verify, with the second command only", async () => {
  const target = startTarget((head) =>
    isSigned(head, "secret")
      ? "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nkey"
      : "HTTP/1.1 403 Forbidden\r\nContent-Length: 21\r\n\r\nSignatureDoesNotMatch",
  );
  await followRecipe("Object stores that sign their paths", scene, { "10.0.0.44:9000": target });
  const statusOf = async (path: string, version: string) => {
    const signing = ["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "access:secret"];
    const url = `https://s3.example.com${path}`;
    return (await fetchFrom(url, "--path-as-is", version, ...signing)).status;
  };
  const paths = ["/bucket/key", "/bucket/a/../b", "/bucket/a/./b", "/bucket/a%7eb"];
  const statuses = () =>
    Promise.all(
      ["--http1.1", "--http2"].map((version) =>
        Promise.all(paths.map((path) => statusOf(path, version))),
      ),
    );
  expect(await statuses()).toEqual([
    [200, 200, 200, 200],
    [200, 200, 200, 200],
  ]);
  const changed = await fetch(`${scene.gateway.admin}/api/v1/routes/s3`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${scene.token}`, "content-type": "application/json" },
    body: JSON.stringify({ path_handling: "canonical" }),
  });
  expect(changed.status).toBe(200);
  expect(await statuses()).toEqual([
    [200, 403, 403, 403],
    [200, 403, 403, 403],
  ]);
});

test("Jellyfin under a sub path: the path passes whole, and no other one", async () => {
  const target = startTarget((head) => {
    const [, path = ""] = head.split(" ");
    return `HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`;
  });
  const [, port = ""] = target.split(":");
  await followRecipe("Jellyfin under a sub path", scene, {
    '"host": "10.0.0.40", "port": 8096': `"host": "127.0.0.1", "port": ${port}`,
  });
  const url = "https://www.example.com";
  expect((await fetchFrom(`${url}/media/web/index.html`)).text()).toBe("/media/web/index.html");
  expect((await fetchFrom(`${url}/mediathek`)).status).toBe(404);
});
