// Sessions: looked up by cookie in memory, persisted by a store; knows neither users' rights nor HTTP.
import type { Clock } from "../clock.ts";
import { createRandomText, hashSession } from "../crypto/token.ts";
import type { Log } from "../log.ts";
import type { Changes } from "../control/change.ts";
import type { RecordedFacts } from "../control/change-contract.ts";
import type { Fact, StoredSession } from "../model/fact.ts";

/** Seconds from sign-in to the end of a session, whether it is used or not: 7 days. */
export const SESSION_SECONDS = 604_800;

/** The oldest one ends when a user signs in once more, so that one user cannot fill the memory. */
const MAX_SESSIONS_OF_USER = 100;
const MAX_USER_AGENT_LENGTH = 256;

export type Session = Omit<StoredSession, "token_hash">;

/** The sessions of the last run. */
export interface SessionStore {
  load(): readonly StoredSession[];
  /** Ids of ended sessions that other nodes do not know yet. */
  ended(): readonly string[];
  /** Keeps these ids across restarts; throws when it cannot. */
  keepEnded(ids: readonly string[]): void;
}

export interface CreatedSession {
  /** The value for the client: 43 characters, not stored. */
  readonly cookie: string;
  readonly session: Session;
}

/** The origin and method of a sign-in. */
export interface SignIn {
  readonly method: Session["method"];
  readonly address: string;
  readonly userAgent: string;
  /** Whether the cookie is for HTTPS only. */
  readonly isSecure: boolean;
}

/** Observes the hashes of sessions. */
export type HashFollower = (hash: string, isLive: boolean) => void;

export interface SessionsOptions {
  readonly store: SessionStore;
  readonly changes: Pick<Changes, "record" | "onFact">;
  readonly clock: Clock;
  readonly log: Log;
}

/** All sessions that have not ended. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #byHash = new Map<string, StoredSession>();
  readonly #byId = new Map<string, StoredSession>();
  readonly #listeners: ((session: Session) => void)[] = [];
  readonly #followers: HashFollower[] = [];
  /** Ended, but still in the store. */
  readonly #leftovers = new Set<string>();
  #recorded: Promise<void> = Promise.resolve();
  /** Whether the store keeps ids of them. */
  #isKept = false;

  /** Loads the store and drops expired sessions. */
  constructor(options: SessionsOptions) {
    this.#options = options;
    for (const id of options.store.ended()) this.#leftovers.add(id);
    this.#isKept = this.#leftovers.size > 0;
    for (const session of options.store.load())
      if (!this.#leftovers.has(session.id)) this.#add(session);
    options.changes.onFact((fact) => {
      if (fact.kind === "session_began") this.#add(fact.session);
      else if (fact.kind === "sessions_ended") {
        const before = this.#leftovers.size;
        for (const id of fact.ids) this.#leftovers.delete(id);
        if (this.#leftovers.size < before && this.#isKept) this.#keepEnded();
        this.#forget(this.#known(fact.ids));
      }
    });
    this.prune();
  }

  /** A session to be recorded, with which it begins. */
  create(userId: string, signIn: SignIn): RecordedFacts<CreatedSession> {
    const { clock } = this.#options;
    const cookie = createRandomText();
    const now = clock.now();
    const session: StoredSession = {
      id: Bun.randomUUIDv7(),
      user_id: userId,
      method: signIn.method,
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + SESSION_SECONDS * 1000).toISOString(),
      address: signIn.address,
      user_agent: printable(signIn.userAgent),
      token_hash: hashSession(cookie, signIn.isSecure),
    };
    this.prune();
    const [oldest, ...others] = this.#ofUser(userId);
    const isFull = oldest !== undefined && others.length + 1 >= MAX_SESSIONS_OF_USER;
    const facts: Fact[] = isFull ? [{ kind: "sessions_ended", ids: [oldest.id] }] : [];
    facts.push({ kind: "session_began", session });
    return { value: { cookie, session: withoutHash(session) }, facts };
  }

  /** The session of a cookie; null when there is none or it has expired. `isSecure`: the name is one for HTTPS only. */
  find(cookie: string, isSecure = false): Session | null {
    // Looked up by its hash, so that the timing reveals nothing about cookies.
    const session = this.#byHash.get(hashSession(cookie, isSecure));
    return session === undefined || this.#isOver(session) ? null : withoutHash(session);
  }

  /** Whether the value is that of a session that has not ended, whatever the name of the cookie. */
  isLive(cookie: string): boolean {
    return this.find(cookie) !== null || this.find(cookie, true) !== null;
  }

  /** The session with this id; null when it has ended. */
  get(id: string): Session | null {
    const session = this.#byId.get(id);
    return session === undefined || this.#isOver(session) ? null : withoutHash(session);
  }

  /** Those of one user, or all; oldest first. */
  list(userId?: string): Session[] {
    return [...this.#byId.values()]
      .filter((session) => userId === undefined || session.user_id === userId)
      .filter((session) => !this.#isOver(session))
      .map(withoutHash);
  }

  /** False when there was none. The cookie is invalid from here on, even if the store cannot be written. */
  end(id: string): boolean {
    const session = this.#byId.get(id);
    if (session === undefined) return false;
    this.#endAll([session]);
    return !this.#isOver(session);
  }

  /** Ends all sessions of a user but the one that is excepted; returns how many. */
  endOfUser(userId: string, exceptSessionId?: string): number {
    const ended = this.#ofUser(userId).filter(({ id }) => id !== exceptSessionId);
    this.#endAll(ended);
    return ended.length;
  }

  /** Ends several; ignores unknown ones. */
  endAll(ids: readonly string[]): void {
    this.#endAll(this.#known(ids));
  }

  /** `listener` is called for each session in the turn in which it ends. */
  onEnd(listener: (session: Session) => void): void {
    this.#listeners.push(listener);
  }

  /** `follower` is called for each session that there is, and from then on for each that begins or ends. */
  followHashes(follower: HashFollower): void {
    this.#followers.push(follower);
    for (const hash of this.#byHash.keys()) follower(hash, true);
  }

  /** Resolves when the end of ended sessions is stored, or cannot be. */
  settled(): Promise<void> {
    return this.#recorded;
  }

  /** Drops expired sessions; call it periodically. */
  prune(): void {
    const over = [...this.#byId.values()].filter((session) => this.#isOver(session));
    // Every node finds them by its own clock.
    if (over.length + this.#leftovers.size > 0) this.#endAll(over);
  }

  #add(session: StoredSession): void {
    this.#byHash.set(session.token_hash, session);
    this.#byId.set(session.id, session);
    for (const follower of this.#followers) follower(session.token_hash, true);
  }

  #ofUser(userId: string): StoredSession[] {
    return [...this.#byId.values()].filter(({ user_id }) => user_id === userId);
  }

  #isOver({ expires_at }: StoredSession): boolean {
    return Date.parse(expires_at) <= this.#options.clock.now();
  }

  #known(ids: readonly string[]): StoredSession[] {
    return ids.map((id) => this.#byId.get(id)).filter((session) => session !== undefined);
  }

  #endAll(sessions: readonly StoredSession[]): void {
    for (const { id } of sessions) this.#leftovers.add(id);
    this.#forget(sessions);
    if (this.#leftovers.size > 0) this.#recorded = this.#record();
  }

  #forget(sessions: readonly StoredSession[]): void {
    for (const session of sessions) {
      this.#byHash.delete(session.token_hash);
      this.#byId.delete(session.id);
      for (const follower of this.#followers) follower(session.token_hash, false);
    }
    for (const session of sessions)
      for (const listener of this.#listeners) listener(withoutHash(session));
  }

  async #record(): Promise<void> {
    try {
      await this.#options.changes.record(() => {
        // Another node may have recorded them meanwhile.
        const ids = [...this.#leftovers];
        return { value: null, facts: ids.length === 0 ? [] : [{ kind: "sessions_ended", ids }] };
      });
    } catch (error) {
      this.#options.log.error("ended sessions could not be deleted from the database", { error });
      this.#keepEnded();
    }
  }

  /** They stay in the set for a retry, also after a restart: a node that is cut off from its fleet may wait for long. */
  #keepEnded(): void {
    try {
      this.#options.store.keepEnded([...this.#leftovers]);
      this.#isKept = this.#leftovers.size > 0;
    } catch (error) {
      this.#options.log.error("ended sessions would be valid again after a restart", { error });
    }
  }
}

function withoutHash({ token_hash: _, ...session }: StoredSession): Session {
  return session;
}

/** The client's User-Agent is shown in the UI. */
function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").slice(0, MAX_USER_AGENT_LENGTH);
}
