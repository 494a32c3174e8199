// Client certificates fail closed: broken settings are refused, and nothing from before or from elsewhere lets a client in.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { Authority, type Leaf } from "../../support/authority.ts";
import { outputOf } from "../../support/child-output.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "../listeners/people.ts";
import { ask, GET, useListeners } from "../listeners/world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const { required, shown } = people;

test("earlier connections are not served once certificates are required", async () => {
  const port = await listener("hardened", { protocol: "https", engine: "sluice" });
  const kept = connectTls({
    host: "127.0.0.1",
    port,
    servername: "a.test",
    rejectUnauthorized: false,
  });
  const answers: string[] = [];
  kept.on("data", (data: Buffer) => answers.push(String(data)));
  let isClosed = false;
  kept.on("close", () => (isClosed = true));
  kept.on("error", () => {});
  kept.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  await eventually(() => answers.join("").includes("}"));
  answers.length = 0;
  const change = await api.call("PATCH /listeners/hardened", {
    body: { client_auth: "require", client_ca: people.root.cert },
  });
  expect(change.status).toBe(200);
  kept.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  await eventually(() => isClosed);
  expect(answers).toEqual([]);
  for (let round = 0; round < 6; round++)
    expect((await ask(port, { servername: "a.test" })).text).toBe("");
  expect((await ask(port, shown(people.good))).text).toStartWith("HTTP/1.1 200");
});

test("CAs can be replaced; certificates of the old ones are refused", async () => {
  const port = await listener("exchanged", required());
  const next = await Authority.create("Next");
  const newcomer = await next.sign({ names: ["bob"] });
  await api.call("PATCH /listeners/exchanged", { body: { client_ca: next.cert } });
  for (let round = 0; round < 6; round++) {
    expect((await ask(port, shown(people.good))).text).toBe("");
    expect((await ask(port, shown(newcomer))).text).toStartWith("HTTP/1.1 200");
  }
});

describe("fails closed:", () => {
  test.each([
    [{ client_ca: null }, "client_ca: is required with client_auth"],
    [{ client_ca: "" }, "client_ca: must hold a PEM certificate"],
    [{ client_ca: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }, "client_ca: "],
    [{ client_ca: "no PEM" }, "client_ca: must hold a PEM certificate"],
    [{ client_crl: "no PEM" }, "client_crl: must hold a PEM revocation list"],
    [
      { client_crl: "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----" },
      "client_crl: revocation list 1 cannot be read",
    ],
    [{ http3: true }, "http3: cannot be combined with client_auth"],
    [{ protocol: "http" }, 'client_auth: needs protocol "https"'],
  ])(
    "%j is refused, new and as a change, and the listener stays as it is",
    async (fields, message) => {
      const answer = await api.call("POST /listeners", {
        body: { name: "broken", address: "127.0.0.1", port: 9, ...required(), ...fields },
      });
      expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(message)]);
      const name = `kept ${JSON.stringify(fields).length}`;
      const port = await listener(`${name} ${Bun.hash(JSON.stringify(fields))}`, required());
      const [{ id }] = (await api.call("GET /listeners")).body.filter(
        (one: { port: number }) => one.port === port,
      );
      expect((await api.call(`PATCH /listeners/${id}`, { body: fields })).status).toBe(400);
      expect((await ask(port, shown(undefined))).text).toBe("");
      expect((await ask(port, shown(people.good))).text).toStartWith("HTTP/1.1 200");
      await api.call(`DELETE /listeners/${id}`);
    },
  );

  test("a plain request, and none at all", async () => {
    const port = await listener("plain", required());
    const answer = await new Promise<string>((resolve) => {
      const socket = connect({ port, host: "127.0.0.1" }, () => void socket.write(GET));
      let text = "";
      socket.on("data", (data: Buffer) => (text += String(data)));
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
    });
    expect(answer).toBe("");
  });
});

describe("with openssl", () => {
  const { beforeAll, test } = needs("openssl");
  let directory: string;
  const run = async (...words: string[]) => {
    const child = Bun.spawn(["openssl", ...words], {
      cwd: directory,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const { code, stdout, stderr } = await outputOf(child);
    if (code !== 0) throw new Error(`openssl ${words.join(" ")}: ${stderr}`);
    return stdout + stderr;
  };
  const file = (name: string) => Bun.file(join(directory, name));

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "sluice-ca-"));
    return () => rmSync(directory, { recursive: true, force: true });
  });

  test("a revoked certificate is refused, others and those without a CRL are not", async () => {
    const elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    await run(
      "req",
      "-x509",
      ...elliptic,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-subj",
      "/CN=Revoking",
      "-days",
      "3",
    );
    for (const name of ["kept", "revoked"]) {
      await run(
        "req",
        ...elliptic,
        "-new",
        "-keyout",
        `${name}.key`,
        "-out",
        `${name}.csr`,
        "-subj",
        `/CN=${name}`,
      );
      await run(
        "x509",
        "-req",
        "-in",
        `${name}.csr`,
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-out",
        `${name}.pem`,
        "-days",
        "2",
        "-set_serial",
        name === "kept" ? "7" : "8",
      );
    }
    await Bun.write(join(directory, "index.txt"), "");
    await Bun.write(join(directory, "crlnumber"), "01\n");
    await Bun.write(
      join(directory, "ca.conf"),
      "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=crlnumber\ndefault_md=sha256\ndefault_crl_days=3\ncertificate=ca.pem\nprivate_key=ca.key\n",
    );
    await run("ca", "-config", "ca.conf", "-revoke", "revoked.pem");
    await run("ca", "-config", "ca.conf", "-gencrl", "-out", "list.pem");
    const leafOf = async (name: string): Promise<Leaf> => ({
      cert: await file(`${name}.pem`).text(),
      key: await file(`${name}.key`).text(),
    });
    const [kept, revoked] = [await leafOf("kept"), await leafOf("revoked")];
    const port = await listener("revoking", required({ client_ca: await file("ca.pem").text() }));
    expect((await ask(port, shown(revoked))).text).toStartWith("HTTP/1.1 200");
    const list = await file("list.pem").text();
    const change = await api.call("PATCH /listeners/revoking", { body: { client_crl: list } });
    expect(change.status).toBe(200);
    for (let round = 0; round < 4; round++) {
      expect((await ask(port, shown(revoked))).text).toBe("");
      expect((await ask(port, shown(kept))).text).toStartWith("HTTP/1.1 200");
    }
    await api.call("PATCH /listeners/revoking", {
      body: { client_ca: people.root.cert, client_crl: list },
    });
    // A list that says nothing of an authority is none for it.
    expect((await ask(port, shown(people.good))).text).toBe("");
  });

  test("s_client connects with its certificate, gets the request, and sees versions and names", async () => {
    const port = await listener("openssl", required({ tls_min_version: "1.3" }));
    await Bun.write(join(directory, "client.pem"), `${people.good.cert}${people.good.key}`);
    const connectTo = async (...words: string[]) => {
      const child = Bun.spawn(
        [
          "openssl",
          "s_client",
          "-connect",
          `127.0.0.1:${port}`,
          "-quiet",
          "-servername",
          "b.test",
          ...words,
        ],
        { cwd: directory, stdin: new Blob([GET]), stdout: "pipe", stderr: "pipe" },
      );
      return await new Response(child.stdout).text();
    };
    expect(await connectTo("-cert", "client.pem")).toContain("421");
    expect(await connectTo("-cert", "client.pem", "-tls1_2")).toBe("");
    expect(await connectTo()).toBe("");
  });
});
