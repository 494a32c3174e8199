// Single sign-on as one object for the API: settings, sign-ins, connection test; knows no HTTP.
import type { Clock } from "../../clock.ts";
import { type RequestLimits, requestLimits } from "../../control/outgoing-request.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import type { Log } from "../../log.ts";
import { ApiError } from "../../model/error.ts";
import type { AuditSink } from "../../control/audit-entry.ts";
import type { Changes } from "../../control/change.ts";
import type { Session, Sessions } from "../sessions.ts";
import type { ManagementCookies } from "../../http/management-cookies.ts";
import { AccountProvisioner, type ClientOrigin } from "./account-provisioner.ts";
import { BrowserCookie } from "./browser-cookie.ts";
import { testConnection, type TestReport } from "./connection-test.ts";
import { type SsoErrorCode, toSsoError } from "./failure.ts";
import { toLocalPath } from "./local-path.ts";
import { PendingSignIns } from "./pending.ts";
import { Providers } from "./provider.ts";
import { SsoSettings } from "./settings.ts";
import { redirectUriOf, SignIns } from "./sign-in.ts";

export interface SingleSignOnOptions {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly cookies: ManagementCookies;
  readonly audit: AuditSink;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  /** Limits of one request to the provider; default: 5 seconds, 1 MiB. */
  readonly limits?: RequestLimits;
}

export type Started =
  { readonly url: string; readonly cookie: string } | { readonly error: SsoErrorCode };

export type Finished =
  | { readonly sessionSecret: string; readonly session: Session; readonly redirect: string }
  | { readonly error: SsoErrorCode };

/** The origin of a request. */
interface Origin extends Omit<ClientOrigin, "isSecure"> {
  /** Scheme and host that the browser used. */
  readonly origin: string;
}

/** Parameters and cookies of the callback. */
export interface FinishRequest extends Origin {
  readonly parameters: URLSearchParams;
  /** The Cookie header. */
  readonly cookies: string | null;
}

export interface StartRequest extends Origin {
  /** Path requested by the client; null: the start page. */
  readonly redirect: string | null;
}

export class SingleSignOn {
  readonly settings: SsoSettings;
  readonly #options: SingleSignOnOptions;
  readonly #providers: Providers;
  readonly #signIns: SignIns;
  readonly #browserCookie: BrowserCookie;

  constructor(options: SingleSignOnOptions) {
    const { changes, box, clock, limits = requestLimits } = options;
    this.#options = options;
    this.settings = new SsoSettings(changes, box);
    this.#browserCookie = new BrowserCookie(options.cookies);
    this.#providers = new Providers({ clock, limits, fetch: changes.dialer.fetch });
    this.#signIns = new SignIns({
      changes,
      box,
      clock,
      providers: this.#providers,
      pending: new PendingSignIns(clock),
      accounts: new AccountProvisioner(options),
    });
  }

  /** The redirect and the cookie of a new sign-in; throws a 400 when single sign-on is disabled or the path is not local. */
  async start(request: StartRequest): Promise<Started> {
    const { sso } = this.#options.changes.config;
    if (!sso.enabled) throw new ApiError(400, "single sign-on is off");
    const redirect = toLocalPath(request.redirect ?? "/");
    if (redirect === null)
      throw new ApiError(400, "redirect: must be a path of this gateway, such as /routes");
    const redirectUri = this.redirectUri(request.origin);
    try {
      const { url, browser } = await this.#signIns.start({ redirect, redirectUri });
      const isSecure = this.hasSecureCookies(request.origin);
      return { url, cookie: this.#browserCookie.set(browser, isSecure) };
    } catch (error) {
      return { error: this.#explain(error, request) };
    }
  }

  /** Opens a session after the callback, or returns an error code. */
  async finish(back: FinishRequest): Promise<Finished> {
    try {
      const isSecure = this.hasSecureCookies(back.origin);
      const browser = this.#browserCookie.read(back.cookies, isSecure);
      const visit = { ...back, browser, isSecure };
      const { cookie, session, user, redirect } = await this.#signIns.finish(visit);
      this.#options.audit.record({
        actor: user.email,
        method: "session",
        address: back.address,
        action: "login",
        kind: "session",
        object_id: session.id,
        object_name: user.email,
        result: "ok",
        revision: null,
        detail: { method: "sso" },
      });
      return { sessionSecret: cookie, session, redirect };
    } catch (error) {
      return { error: this.#explain(error, back) };
    }
  }

  /** Tests the stored settings, also while single sign-on is disabled. */
  test(origin: string): Promise<TestReport> {
    const { sso, settings } = this.#options.changes.config;
    return testConnection({
      sso,
      // Not the provider of sign-ins, whose caches may be older than the settings at the provider.
      provider: this.#providers.open(sso.issuer),
      client: (provider) => this.#signIns.clientOf(provider, sso),
      publicUrl: settings.public_url,
      redirectUri: this.redirectUri(origin),
    });
  }

  /** Value of the Set-Cookie header field that deletes the cookie of the sign-in. */
  expiredCookie(origin: string): string {
    return this.#browserCookie.expire(this.hasSecureCookies(origin));
  }

  /** Whether the cookies have the attribute Secure. */
  hasSecureCookies(origin: string): boolean {
    return this.redirectUri(origin).startsWith("https:");
  }

  redirectUri(origin: string): string {
    return redirectUriOf(this.#options.changes.config.settings.public_url, origin);
  }

  /** The browser gets the code only; the details are in the log. */
  #explain(error: unknown, { address }: Origin): SsoErrorCode {
    const { audit, log } = this.#options;
    const known = toSsoError(error);
    const code = known?.code ?? "internal_error";
    if (code === "internal_error") log.error("single sign-on failed", { address, error });
    else log.warn("single sign-on was refused", { address, reason: code, detail: known?.message });
    audit.record({
      actor: "unknown",
      method: "none",
      address,
      action: "login",
      kind: "session",
      object_id: null,
      object_name: null,
      result: code === "internal_error" ? "failed" : "refused",
      revision: null,
      detail: { method: "sso", reason: code, message: known?.message ?? "see the log" },
    });
    return code;
  }
}
