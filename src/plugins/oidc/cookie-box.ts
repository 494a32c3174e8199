// Encrypted texts in cookies, split over several when too long; knows nothing of their content.
import type { RequestContext } from "../../pdk/context.ts";
import { SecretBox } from "../../pdk/crypto.ts";
import { cookieValue } from "../../pdk/http.ts";

/** Browsers accept 4096 bytes with name and attributes. */
const MAX_VALUE = 3800;
/** Leaves room for other headers in the request head. */
const MAX_COOKIES = 3;

export interface CookieBoxOptions {
  /** As in the settings. */
  readonly name: string;
  readonly key: Uint8Array;
  readonly sameSite: "Lax" | "Strict" | "None";
}

export class CookieBox {
  readonly #options: CookieBoxOptions;
  readonly #box: SecretBox;
  readonly #prefix: string;

  constructor(options: CookieBoxOptions) {
    this.#options = options;
    this.#box = new SecretBox(options.key);
    this.#prefix = `sealed:1:${this.#box.keyId}:`;
  }

  /** The text; null when there is none, or it is not authentic. */
  read(context: RequestContext): string | null {
    const header = context.header("cookie");
    const name = this.#nameFor(context);
    const first = cookieValue(header, name);
    if (first === null) return null;
    const count = Number(/^([1-9])\./.exec(first)?.[1] ?? 0);
    if (count === 0 || count > MAX_COOKIES) return null;
    let text = first.slice(2);
    for (let at = 1; at < count; at++) {
      const part = cookieValue(header, `${name}.${at}`);
      if (part === null) return null;
      text += part;
    }
    try {
      return this.#box.open(this.#prefix + text);
    } catch {
      return null;
    }
  }

  /** Values of Set-Cookie that store the text; null when it is too long for cookies. */
  write(context: RequestContext, text: string, maxAge: number): string[] | null {
    const sealed = this.#box.seal(text).slice(this.#prefix.length);
    const count = Math.ceil(sealed.length / MAX_VALUE);
    if (count > MAX_COOKIES) return null;
    const name = this.#nameFor(context);
    const end = this.#attributes(context, maxAge);
    const cookies: string[] = [];
    for (let at = 0; at < count; at++) {
      const part = sealed.slice(at * MAX_VALUE, (at + 1) * MAX_VALUE);
      cookies.push(`${at === 0 ? `${name}=${count}.` : `${name}.${at}=`}${part}${end}`);
    }
    return [...cookies, ...this.#clearFrom(context, count)];
  }

  /** Values of Set-Cookie that delete what the browser has sent. */
  clear(context: RequestContext): string[] {
    return this.#clearFrom(context, 0);
  }

  #clearFrom(context: RequestContext, first: number): string[] {
    const header = context.header("cookie");
    const name = this.#nameFor(context);
    const names = [
      name,
      ...Array.from({ length: MAX_COOKIES - 1 }, (_, at) => `${name}.${at + 1}`),
    ];
    return names
      .slice(first)
      .filter((each) => cookieValue(header, each) !== null)
      .map((each) => `${each}=${this.#attributes(context, 0)}`);
  }

  #attributes({ scheme }: RequestContext, maxAge: number): string {
    const { sameSite } = this.#options;
    const isSecure = scheme === "https";
    // Browsers reject SameSite=None without Secure.
    const site = sameSite === "None" && !isSecure ? "Lax" : sameSite;
    return `; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=${site}${isSecure ? "; Secure" : ""}`;
  }

  #nameFor({ scheme }: RequestContext): string {
    const { name } = this.#options;
    return scheme === "https" ? name : withoutPrefix(name);
  }
}

/** Browsers accept cookies with these prefixes over TLS only. */
const withoutPrefix = (name: string) => name.replace(/^__(?:Host|Secure)-/, "");

/** Removes all cookies of this name, or that begin with it and a dot, from the upstream request; with and without prefix. */
export function hideCookies(context: RequestContext, name: string): void {
  const header = context.header("cookie");
  const bare = withoutPrefix(name);
  if (header === null || !header.includes(bare)) return;
  for (const pair of header.split(";")) {
    const each = (pair.split("=")[0] ?? "").trim();
    for (const own of [name, bare])
      if (each === own || each.startsWith(`${own}.`)) context.upstream.removeCookie(each);
  }
}
