// What plugins see of a request that was there when it came; knows nothing of what plugins have found out or changed.
import type { ClientTls } from "../../pdk/context.ts";
import { cookieValue } from "../../http/cookie.ts";
import { queryValue } from "../../http/query.ts";
import type { RequestContext } from "../request-context.ts";
import { IDENTITY_FIELDS } from "./identity-fields.ts";

export class RequestFacts {
  protected context: RequestContext;

  constructor(context: RequestContext) {
    this.context = context;
  }

  get id(): string {
    return this.context.id;
  }

  setId(id: string): void {
    this.context.setId(id);
  }

  get method(): string {
    return this.context.method;
  }

  get host(): string {
    return this.context.host;
  }

  get clientHost(): string {
    return this.context.clientHost();
  }

  get scheme(): "http" | "https" {
    return this.context.clientScheme();
  }

  get port(): string {
    return this.context.clientPort();
  }

  get path(): string {
    return this.context.path;
  }

  get query(): string {
    return this.context.query;
  }

  get target(): string {
    return this.context.target;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.context.headers;
  }

  header(name: string): string | null {
    return IDENTITY_FIELDS.has(name) ? null : this.context.header(name);
  }

  cookie(name: string): string | null {
    return cookieValue(this.context.header("cookie"), name);
  }

  queryValue(name: string): string | null {
    return queryValue(this.context.query, name);
  }

  clientAddress(): string {
    return this.context.clientAddress();
  }

  peerAddress(): string {
    return this.context.peerAddress();
  }

  isFromTrustedProxy(): boolean {
    return this.context.isFromTrustedProxy();
  }

  get tls(): ClientTls | null {
    const { connection } = this.context;
    if (connection === null) return null;
    const { tlsVersion: version, serverName, clientCertificate } = connection;
    return { version, serverName, clientCertificate };
  }

  queued(milliseconds: number): void {
    this.context.record.queueMs += milliseconds;
  }

  get signal(): AbortSignal {
    return this.context.request.signal;
  }
}
