// A data plane behind oidc, a provider that can lie, and as much of a browser as a login needs.
import { clientId, clientSecret, LyingProvider } from "../sso/lying-provider.ts";
import { pluginScene, type PluginScene, type SceneAnswer } from "../../support/plugin-scene.ts";

export const CALLBACK = "/_sluice/oidc/callback";
export const LOGOUT = "/_sluice/oidc/logout";

/** Cookies by name; what a response sets is kept or, with an age of 0, gone. */
export class Jar {
  readonly cookies = new Map<string, string>();

  keep({ headers }: { readonly headers: Headers }): void {
    for (const line of headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }

  get header(): Record<string, string> {
    if (this.cookies.size === 0) return {};
    return { Cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
  }
}

export class World {
  readonly provider: LyingProvider;
  readonly scene: PluginScene;

  private constructor(provider: LyingProvider, scene: PluginScene) {
    this.provider = provider;
    this.scene = scene;
  }

  /** `beside`: another node, with the same provider. */
  static async start(
    options: Parameters<typeof pluginScene>[0] = {},
    beside: World | null = null,
  ): Promise<World> {
    const provider = beside?.provider ?? (await LyingProvider.start());
    const { issuer } = provider;
    const scene = await pluginScene({
      ...options,
      plugins: [{ name: "oidc", config: { ...base, issuer } }],
      consumers: [{ username: "guest" }],
      answer: () => new Response("ok", { headers: { "Set-Cookie": "app=1" } }),
    });
    return new World(provider, scene);
  }

  /** Another instance: what it has learned of the provider is forgotten. */
  async configure(config: Record<string, unknown> = {}): Promise<void> {
    const { issuer } = this.provider;
    await this.scene.apply({ plugins: [{ name: "oidc", config: { ...base, issuer, ...config } }] });
  }

  /** `configure`, with a provider that tells the truth. */
  async reset(): Promise<void> {
    this.provider.lie = {};
    this.provider.document = {};
    this.provider.intercept = () => null;
    await this.configure();
  }

  async get(path: string, jar: Jar, headers: Record<string, string> = {}): Promise<SceneAnswer> {
    const cookie = [jar.header["Cookie"], headers["Cookie"]].filter(Boolean).join("; ");
    const answer = await this.scene.get(path, {
      ...headers,
      ...(cookie === "" ? {} : { Cookie: cookie }),
    });
    jar.keep(answer);
    return answer;
  }

  /** A page is opened; the address at the provider to which it leads. */
  async begin(path: string, jar: Jar, headers: Record<string, string> = {}): Promise<string> {
    const { status, headers: fields } = await this.get(path, jar, headers);
    if (status !== 302) throw new Error(`not led anywhere: ${status}`);
    return fields.get("location") ?? "";
  }

  /** A complete login; the response of the callback. */
  async signIn(
    jar: Jar,
    path = "/page",
    headers: Record<string, string> = {},
  ): Promise<SceneAnswer> {
    const back = this.provider.agree(await this.begin(path, jar, headers));
    return await this.get(`${CALLBACK}?${back}`, jar, headers);
  }

  async stop(): Promise<void> {
    await this.scene.stop();
    await this.provider.stop();
  }
}

const base = { client_id: clientId, client_secret: clientSecret };
