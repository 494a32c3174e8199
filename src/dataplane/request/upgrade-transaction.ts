// Proxies a request that asks for an upgrade to another protocol than WebSocket (RFC 9110 section 7.8); knows nothing of that protocol.
import { failures, type ProxyError } from "../error.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { NO_POOL, UpstreamConnection } from "../upstream/connection.ts";
import { Exchange } from "../upstream/exchange.ts";
import { requestHead } from "../upstream/request-writer.ts";
import { listOf } from "../upstream/response-head.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { UpstreamExchange } from "../upstream/transport.ts";
import type { ClientRequest } from "./client-request.ts";
import { joinUpgraded } from "./join-upgraded.ts";
import { ProxyTransaction } from "./proxy-transaction.ts";
import type { BodyState } from "./upstream-attempts.ts";
import { protocolsIn } from "../../http/upgrade-protocols.ts";
import { upstreamHost } from "./upstream-request.ts";

/** A response other than 101 is an ordinary one. */
export class UpgradeTransaction extends ProxyTransaction {
  readonly #protocols: string;

  /** `protocols`: of `chooseUpgrade`. Call `writeUpstreamFields` before. */
  constructor(
    request: ClientRequest,
    parts: { readonly route: RouteRuntime; readonly service: ServiceRuntime },
    protocols: string,
  ) {
    super(request, parts.route, parts.service);
    this.#protocols = protocols;
  }

  /** A connection of its own: gateway and target may disagree about the state after a refused upgrade. */
  protected override openExchange(target: TargetRuntime): UpstreamExchange {
    const connection = new UpstreamConnection(target.endpoint, NO_POOL, true);
    return new Exchange(connection, target.heads, this);
  }

  override requestHead(): string {
    const { request, target } = this;
    const host = target === null ? "" : upstreamHost(this, target);
    return requestHead(request, host, { upgrade: this.#protocols });
  }

  /** A request that reached the target may have begun something there: only unsent ones are retried. */
  override pauseAfterFailure(error: ProxyError, body: BodyState): number | null {
    return error.retry === "always" ? super.pauseAfterFailure(error, body) : null;
  }

  onUpgraded(head: ResponseHead, connection: UpstreamConnection, rest: Buffer): void {
    this.attemptResponded(101);
    const offered = protocolsIn(this.#protocols.toLowerCase());
    const chosen = head.upgrade ?? "";
    if (!protocolsIn(chosen.toLowerCase()).every((name) => offered.includes(name))) {
      connection.destroy();
      this.onFailed(failures.upgrade("the target switched to a protocol that was not offered"));
      return;
    }
    this.attemptCompleted();
    const fields = listOf(head).pairs;
    const parts = { protocol: chosen, fields, frames: null, connection, rest };
    const problem = joinUpgraded(this, this.detachTarget(), parts);
    if (problem === null) this.leave();
    else this.onFailed(problem);
  }
}
