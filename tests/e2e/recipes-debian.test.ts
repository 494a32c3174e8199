// Applications that Debian has, set up as docs/recipes.md describes, and what fails without that.
import {
  afterAll as afterAllAlways,
  beforeAll as beforeAllAlways,
  describe,
  expect,
} from "bun:test";
import { join } from "node:path";
import {
  type Application,
  type ApplicationOptions,
  startApplication,
} from "../support/application.ts";
import { lackOf, needs, type Program } from "../support/needs.ts";
import { messageOf, visit, webSocket } from "../support/public-names.ts";
import { quietPort } from "../support/quiet-port.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";

const isPossible = lackOf("executable", "curl") === null;
let scene: RecipeGateway;
const stops: (() => unknown)[] = [];
beforeAllAlways(async () => {
  if (!isPossible) return;
  scene = await startRecipeGateway();
  stops.push(() => scene.gateway.stop());
}, 60_000);
afterAllAlways(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const get = (url: string, args: readonly string[] = []) => visit(scene.gateway, url, args);

/** The application and its recipe, before the tests of its section. */
function recipe(
  heading: string,
  program: Program,
  { upstream, ...options }: ApplicationOptions & { readonly upstream: string },
) {
  const kit = needs("executable", "curl", program);
  let application: Application | null = null;
  kit.beforeAll(async () => {
    const started = await startApplication(options);
    application = started;
    stops.push(() => started.stop());
    await followRecipe(heading, scene, { [upstream]: started.url });
  }, 90_000);
  return { test: kit.test, urlOf: () => application?.url ?? "" };
}

describe("Transmission", () => {
  const { test, urlOf } = recipe("Transmission", "transmission-daemon", {
    upstream: "http://10.0.0.20:9091",
    command: ({ port, directory }) => [
      ...["transmission-daemon", "--foreground", "--config-dir", directory],
      ...["--port", String(port), "--no-portmap", "--no-dht", "--no-lpd"],
      ...["--peerport", String(quietPort()), "--download-dir", directory],
    ],
    files: () => ({
      "settings.json": JSON.stringify({
        ...JSON.parse(blocksOf("Transmission", "json")),
        "rpc-authentication-required": false,
      }),
    }),
  });
  const rpc = "/transmission/rpc";

  test("rejects the public name as Host, which the gateway does not send", async () => {
    const headers = { host: "torrents.example.com" };
    expect((await fetch(urlOf() + rpc, { headers })).status).toBe(421);
    expect((await get(`https://torrents.example.com${rpc}`)).status).toBe(409);
  });

  test("is controlled with its session id", async () => {
    const url = `https://torrents.example.com${rpc}`;
    const id = (await get(url)).header("x-transmission-session-id") ?? "";
    const { status, text } = await get(url, [
      ...["-H", `X-Transmission-Session-Id: ${id}`],
      ...["--data", '{"method":"session-get"}'],
    ]);
    expect([status, JSON.parse(text()).result]).toEqual([200, "success"]);
  });

  test("has its pages behind redirects within the public name", async () => {
    const { text, status } = await get("https://torrents.example.com/", ["--location"]);
    expect([status, text()]).toEqual([200, expect.stringContaining("<title>Transmission")]);
  });
});

describe("Syncthing", () => {
  const { test, urlOf } = recipe("Syncthing", "syncthing", {
    upstream: "http://127.0.0.1:8384",
    command: ({ port, directory }) => [
      ...["syncthing", "serve", `--home=${directory}`, `--gui-address=127.0.0.1:${port}`],
      ...["--no-browser", "--no-default-folder", "--no-upgrade", "--no-restart"],
    ],
    files: () => ({
      "config.xml": `<configuration version="35"><options>
        <listenAddress>tcp://127.0.0.1:${quietPort()}</listenAddress>
        <globalAnnounceEnabled>false</globalAnnounceEnabled>
        <localAnnounceEnabled>false</localAnnounceEnabled>
        <relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled>
        <crashReportingEnabled>false</crashReportingEnabled><urAccepted>-1</urAccepted>
      </options></configuration>`,
    }),
  });

  test("rejects the public name as Host, which the gateway does not send", async () => {
    const refused = await fetch(urlOf(), { headers: { host: "sync.example.com" } });
    expect([refused.status, await refused.text()]).toEqual([403, "Host check error\n"]);
    const { status, text } = await get("https://sync.example.com/");
    expect([status, text()]).toEqual([200, expect.stringContaining("<title")]);
  });

  test("accepts its own token against forged requests, from its cookie", async () => {
    const page = await get("https://sync.example.com/");
    const [, name = "", token = ""] =
      /(CSRF-Token-\w+)=(\w+)/.exec(page.header("set-cookie") ?? "") ?? [];
    const url = "https://sync.example.com/rest/system/ping";
    expect((await get(url, ["-X", "POST"])).status).toBe(403);
    const args = ["-X", "POST", "-H", `X-${name}: ${token}`, "--cookie", `${name}=${token}`];
    expect((await get(url, args)).status).toBe(200);
  });
});

describe("Cockpit", () => {
  const { test } = recipe("Cockpit", "cockpit-ws", {
    upstream: "http://10.0.0.21:9090",
    command: ({ port }) => ["cockpit-ws", "--no-tls", `--port=${port}`, "--address=127.0.0.1"],
    files: () => ({ "cockpit/cockpit.conf": blocksOf("Cockpit", "ini") }),
    env: ({ directory }) => ({ XDG_CONFIG_DIRS: directory }),
  });
  const url = "wss://cockpit.example.com/cockpit/socket";
  const protocols = ["cockpit1"];

  test("has its login page", async () => {
    const { status, text } = await get("https://cockpit.example.com/");
    expect([status, text()]).toEqual([200, expect.stringContaining("login")]);
  });

  test("opens its WebSocket for its public name", async () => {
    const socket = await webSocket(scene.gateway, url, { protocols });
    expect(String(await messageOf(socket))).toContain('"command":"init"');
    socket.close();
  });

  test("refuses it to pages of other sites, and to its own before it knows the name", async () => {
    const origin = "https://evil.example.com";
    await expect(webSocket(scene.gateway, url, { protocols, origin })).rejects.toThrow();
    const plain = await startApplication({
      command: ({ port }) => ["cockpit-ws", "--no-tls", `--port=${port}`, "--address=127.0.0.1"],
      env: ({ directory }) => ({ XDG_CONFIG_DIRS: directory }),
    });
    const { status } = await fetch(`${plain.url}/cockpit/socket`, {
      headers: {
        ...{ host: "cockpit.example.com", origin: "https://cockpit.example.com" },
        ...{ upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13" },
        ...{ "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "x-forwarded-proto": "https" },
      },
    });
    await plain.stop();
    expect(status).toBe(403);
  });
});

describe("Prometheus", () => {
  const { test } = recipe("Prometheus", "prometheus", {
    upstream: "http://10.0.0.22:9090",
    command: ({ port, directory }) => [
      ...["prometheus", `--web.listen-address=127.0.0.1:${port}`],
      ...[`--config.file=${directory}/prometheus.yml`, `--storage.tsdb.path=${directory}/data`],
      blocksOf("Prometheus", "text").trim(),
    ],
    files: () => ({ "prometheus.yml": "global: { scrape_interval: 1s }\n" }),
  });

  test("responds to queries, and has the timeout of the recipe", async () => {
    const { text } = await get("https://prometheus.example.com/api/v1/query?query=1%2B1");
    expect(JSON.parse(text())).toMatchObject({
      status: "success",
      data: { result: [expect.any(Number), "2"] },
    });
    const { gateway, token } = scene;
    const response = await gateway.api("GET", "/api/v1/services/prometheus", undefined, {
      authorization: `Bearer ${token}`,
    });
    expect(await response.json()).toMatchObject({ response_timeout: 150_000 });
  });

  test("redirects to its graph within the public name", async () => {
    const { status, header } = await get("https://prometheus.example.com/");
    expect(status).toBe(302);
    const to = new URL(header("location") ?? "", "https://prometheus.example.com/");
    // Debian's has the older pages.
    expect(to.href.replace("/classic", "")).toBe("https://prometheus.example.com/graph");
  });
});

describe("Mosquitto", () => {
  const user = { name: "you", password: "a password" };
  const { test } = recipe("Mosquitto", "mosquitto", {
    upstream: "http://10.0.0.23:9001",
    command: () => [
      ...["sh", "-c"],
      `mosquitto_passwd -c -b passwords ${user.name} '${user.password}' && exec mosquitto -c mosquitto.conf`,
    ],
    files: ({ port, directory }) => ({
      "mosquitto.conf": `user root\n${blocksOf("Mosquitto", "text")
        .replace("listener 1883", `listener ${quietPort()} 127.0.0.1`)
        .replace("listener 9001", `listener ${port} 127.0.0.1`)
        .replace("/etc/mosquitto/passwords", join(directory, "passwords"))}`,
    }),
    env: () => ({ PATH: `${process.env["PATH"]}:/usr/sbin` }),
  });

  const text = (value: string) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
  };
  /** A control packet of MQTT 3.1.1 (section 2.2). */
  const packet = (first: number, ...parts: readonly Uint8Array[]) => {
    const body = Buffer.concat(parts);
    const length: number[] = [];
    let rest = body.length;
    do {
      length.push((rest % 128) + (rest > 127 ? 128 : 0));
      rest = Math.floor(rest / 128);
    } while (rest > 0);
    return Buffer.concat([Buffer.from([first, ...length]), body]);
  };
  const connectAs = (id: string, password: string) =>
    packet(
      0x10,
      text("MQTT"),
      Buffer.from([4, 0xc2, 0, 60]),
      text(id),
      text(user.name),
      text(password),
    );

  const open = () =>
    webSocket(scene.gateway, "wss://mqtt.example.com/mqtt", { protocols: ["mqtt"] });

  test("carries messages between two browsers", async () => {
    const [one, two] = [await open(), await open()];
    for (const [socket, id] of [
      [one, "one"],
      [two, "two"],
    ] as const) {
      expect(socket.protocol).toBe("mqtt");
      const acknowledged = messageOf(socket);
      socket.send(connectAs(id, user.password));
      expect(await acknowledged).toEqual(new Uint8Array([0x20, 2, 0, 0]));
    }
    const subscribed = messageOf(two);
    two.send(packet(0x82, Buffer.from([0, 1]), text("home/#"), Buffer.from([0])));
    expect(await subscribed).toEqual(new Uint8Array([0x90, 3, 0, 1, 0]));
    const published = packet(0x30, text("home/door"), Buffer.alloc(100_000, "x"));
    let received = Buffer.alloc(0);
    const arrived = new Promise<void>((done) => {
      two.onmessage = ({ data }) => {
        received = Buffer.concat([received, new Uint8Array(data as ArrayBuffer)]);
        if (received.length >= published.length) done();
      };
    });
    one.send(published);
    await arrived;
    expect(received.equals(published)).toBe(true);
    one.close();
    two.close();
  });

  test("rejects a wrong password itself", async () => {
    const socket = await open();
    const refused = messageOf(socket);
    socket.send(connectAs("three", "wrong"));
    expect(await refused).toEqual(new Uint8Array([0x20, 2, 0, 5]));
    socket.close();
  });
});
