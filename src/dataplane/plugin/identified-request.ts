// Who has sent a request, as plugins find out and see it; knows no plugin.
import type { ConsumerView, CredentialView } from "../../pdk/context.ts";
import { EndFacts } from "./end-facts.ts";
import { type Identity, NOBODY } from "./identity.ts";
import { identityLines } from "./identity-fields.ts";
import type { UpstreamEdits } from "./upstream-edits.ts";

const NONE: readonly string[] = [];

export abstract class IdentifiedRequest extends EndFacts {
  protected identity: Identity = NOBODY;

  abstract get upstream(): UpstreamEdits;

  get consumer(): ConsumerView | null {
    return this.identity.consumer;
  }

  get credential(): CredentialView | null {
    return this.identity.credential;
  }

  get credentialId(): string | null {
    return this.identity.credentialId;
  }

  get isAnonymous(): boolean {
    return this.identity.isAnonymous;
  }

  get isAuthenticated(): boolean {
    return this.identity.isAuthenticated;
  }

  get groups(): readonly string[] {
    return this.identity.groups;
  }

  authenticate(
    consumer: ConsumerView | null,
    by: {
      readonly credential?: CredentialView | null;
      readonly credentialId?: string | null;
      readonly groups?: readonly string[];
      readonly isAnonymous?: boolean;
    },
  ): void {
    const { credential = null, credentialId = null, groups = NONE, isAnonymous = false } = by;
    const own = consumer?.groups ?? NONE;
    this.identity = {
      consumer,
      credential,
      credentialId: isAnonymous ? null : (credential?.id ?? credentialId),
      isAnonymous,
      isAuthenticated: !isAnonymous,
      groups: groups.length === 0 ? own : [...own, ...groups],
    };
    this.upstream.identity = identityLines({ consumer, credential, credentialId, isAnonymous });
  }
}
