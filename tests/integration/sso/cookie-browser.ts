// As much of a browser as a sign-in needs: cookies by origin and path, and one step at a time.
interface Cookie {
  readonly origin: string;
  readonly path: string;
  readonly name: string;
  readonly value: string;
}

export class CookieBrowser {
  #cookies: Cookie[] = [];
  /** Hosts that no name server knows, and where they are really served. */
  readonly #hosts: Readonly<Record<string, string>>;

  constructor(hosts: Readonly<Record<string, string>> = {}) {
    this.#hosts = hosts;
  }

  /** Names of the cookies that would be sent there. */
  cookiesFor(url: string): readonly string[] {
    return this.#sentTo(url).map(({ name }) => name);
  }

  /** Asks for one page; a redirect is handed back with its Location made absolute. */
  async visit(url: string, form?: Record<string, string>): Promise<Step> {
    const { origin, host, pathname, search } = new URL(url);
    const cookie = this.#sentTo(url)
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ");
    const response = await fetch(`${this.#hosts[origin] ?? origin}${pathname}${search}`, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { host, ...(cookie === "" ? {} : { cookie }) },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    });
    for (const header of response.headers.getSetCookie()) this.#keep(origin, header);
    const location = response.headers.get("location");
    return {
      url,
      status: response.status,
      location: location === null ? null : new URL(location, url).href,
      cookies: response.headers.getSetCookie(),
      text: await response.text(),
    };
  }

  /** Continues until a page is not a redirect, or leads to an address that `until` is waiting for. */
  async follow(url: string, until: (url: string) => boolean = () => false): Promise<Step> {
    let step = await this.visit(url);
    for (let hops = 0; step.location !== null && hops < 20; hops++) {
      if (until(step.location)) return step;
      step = await this.visit(step.location);
    }
    return step;
  }

  #sentTo(url: string): readonly Cookie[] {
    const { origin, pathname } = new URL(url);
    return this.#cookies.filter(
      (cookie) => cookie.origin === origin && pathname.startsWith(cookie.path),
    );
  }

  #keep(origin: string, header: string): void {
    const [pair = "", ...attributes] = header.split(/; */);
    const [name = "", value = ""] = pair.split(/=(.*)/s);
    const attribute = (wanted: string) =>
      attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.split(/=(.*)/s)[1];
    const path = attribute("path") ?? "/";
    this.#cookies = this.#cookies.filter(
      (cookie) => cookie.origin !== origin || cookie.name !== name || cookie.path !== path,
    );
    const isOver =
      attribute("max-age") === "0" || Date.parse(attribute("expires") ?? "") < Date.now();
    if (!isOver) this.#cookies.push({ origin, path, name, value });
  }
}

export interface Step {
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
  readonly cookies: readonly string[];
  readonly text: string;
}
