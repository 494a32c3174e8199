// The compiled executable between gRPC clients and servers in Node: listeners with the engines that serve gRPC, plain and TLS targets.
import { Authority, type Leaf } from "./authority.ts";
import { freePort } from "./data-plane.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import type { ChannelOptions } from "./grpc/protocol.ts";
import { GrpcClient, GrpcServer } from "./grpc-peers.ts";
import { executable } from "./executable.ts";

/** Names of hosts: the service behind one speaks plain HTTP/2 to its targets, that behind the other TLS. */
export const PLAIN = "plain.test";
export const SECURE = "secure.test";

/** Listeners by name: each engine with TLS and without. */
export const LISTENERS = ["full-https", "full-http", "sluice-https", "sluice-http"] as const;
export type ListenerName = (typeof LISTENERS)[number];

const SETTINGS: Readonly<Record<ListenerName, object>> = {
  "full-https": { protocol: "https", engine: "sluice" },
  "full-http": { protocol: "http", engine: "sluice" },
  "sluice-https": { protocol: "https", engine: "sluice" },
  "sluice-http": { protocol: "http", engine: "sluice" },
};

export class GrpcScene {
  readonly gateway: Gateway;
  readonly authority: Authority;
  readonly client: GrpcClient;
  readonly plain: GrpcServer;
  readonly secure: GrpcServer;
  readonly #ports: Readonly<Record<ListenerName, number>>;

  private constructor(
    parts: Pick<GrpcScene, "gateway" | "authority" | "client" | "plain" | "secure">,
  ) {
    this.gateway = parts.gateway;
    this.authority = parts.authority;
    this.client = parts.client;
    this.plain = parts.plain;
    this.secure = parts.secure;
    this.#ports = {
      "full-https": freePort(),
      "full-http": freePort(),
      "sluice-https": freePort(),
      "sluice-http": freePort(),
    };
  }

  static async start(
    options: { readonly listeners?: readonly ListenerName[] } = {},
  ): Promise<GrpcScene> {
    const authority = await Authority.create("gRPC tests");
    const [gateway, client, plain, secure] = await Promise.all([
      startGateway({ binary: executable, workers: 2 }),
      GrpcClient.start(),
      GrpcServer.start(),
      GrpcServer.start(await authority.sign({ names: ["localhost"], addresses: ["127.0.0.1"] })),
    ]);
    const scene = new GrpcScene({ gateway, authority, client, plain, secure });
    await scene.#configure(options.listeners ?? LISTENERS);
    return scene;
  }

  async #configure(listeners: readonly ListenerName[]): Promise<void> {
    const { gateway } = this;
    await gateway.ok("POST", "/api/v1/certificates", this.certificate(await this.issue()));
    for (const name of listeners) {
      const place = { name, address: "127.0.0.1", port: this.#ports[name] };
      await gateway.ok("POST", "/api/v1/listeners", { ...place, ...SETTINGS[name] });
    }
    await gateway.ok("POST", "/api/v1/services", {
      name: "plain",
      protocol: "grpc",
      targets: [{ host: "127.0.0.1", port: this.plain.port }],
    });
    await gateway.ok("POST", "/api/v1/services", {
      name: "secure",
      protocol: "grpcs",
      targets: [{ host: "127.0.0.1", port: this.secure.port }],
      tls: { ca_certificates: this.authority.cert },
    });
    for (const [name, host] of [
      ["plain", PLAIN],
      ["secure", SECURE],
    ]) {
      const route = { name, service_id: name, hosts: [host], listener_ids: listeners };
      await gateway.ok("POST", "/api/v1/routes", route);
    }
  }

  /** A certificate for both names. */
  issue(): Promise<Leaf> {
    return this.authority.sign({ names: [PLAIN, SECURE] });
  }

  certificate(leaf: Leaf): object {
    return { name: "names", certificate: leaf.cert, private_key: leaf.key };
  }

  channel(listener: ListenerName, authority = PLAIN): ChannelOptions {
    const to = { port: this.#ports[listener], authority };
    return listener.endsWith("-http") ? to : { ...to, ca: this.authority.cert };
  }

  async stop(): Promise<void> {
    await Promise.all([this.client?.stop(), this.gateway?.stop()]);
    await Promise.all([this.plain?.kill(), this.secure?.kill()]);
  }
}
