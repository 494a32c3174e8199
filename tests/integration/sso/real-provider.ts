// A certified OpenID Connect provider in the test process: users sign in with their e-mail address and any password.
import { createServer, type Server } from "node:http";
import { generateKeyPair, exportJWK } from "jose";
import Provider from "oidc-provider";
import type { CookieBrowser, Step } from "./cookie-browser.ts";

export interface Person {
  readonly email_verified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[];
}

export interface RealProvider {
  readonly issuer: string;
  stop(): void;
}

export interface RealClient {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method: string;
}

/** `people` by e-mail address, which is the subject as well. */
export async function startProvider(
  people: Readonly<Record<string, Person>>,
  clients: readonly RealClient[],
  redirectUris: readonly string[],
): Promise<RealProvider> {
  const server = createServer();
  const port = await listen(server);
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const signing = { ...(await exportJWK(privateKey)), kid: "signing", use: "sig", alg: "RS256" };
  const provider = new Provider(issuer, {
    clients: clients.map((client) => ({ ...client, redirect_uris: redirectUris })),
    jwks: { keys: [signing] },
    cookies: { keys: ["test"] },
    claims: { email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
    pkce: { required: () => true },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, email: id, ...people[id] }),
    }),
  });
  server.on("request", provider.callback());
  return {
    issuer,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}

/** Signs in at the provider and agrees to everything; returns the step that leads back to `callback`. */
export async function signInAt(
  browser: CookieBrowser,
  url: string,
  { email, callback }: { readonly email: string; readonly callback: string },
): Promise<Step> {
  const isBack = (location: string) => location.startsWith(callback);
  let step = await browser.follow(url, isBack);
  for (const prompt of ["login", "consent"]) {
    if (step.location !== null) return step;
    if (!step.text.includes(`value="${prompt}"`))
      throw new Error(`no ${prompt} at ${step.url}: ${step.status} ${step.text}`);
    const action = /action="([^"]+)"/.exec(step.text)?.[1] ?? "";
    const form = prompt === "login" ? { prompt, login: email, password: "any" } : { prompt };
    const answer = await browser.visit(new URL(action, step.url).href, form);
    step = await browser.follow(answer.location ?? "", isBack);
  }
  return step;
}
