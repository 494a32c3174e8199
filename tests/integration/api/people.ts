// Users of the management API: created, signed in and calling, one gateway per test file.
import { afterAll, beforeAll } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";

export const PASSWORD = "correct horse battery";
export const ROOT = { email: "root@a.example", name: "Root", role: "admin", password: PASSWORD };

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly body: any;
}

/** Sends `METHOD /path`, the path relative to /api/v1, with the credentials of one person. */
export type Call = (line: string, body?: unknown) => Promise<Answer>;

export interface People {
  readonly gateway: Gateway;
  /** Without credentials. */
  readonly nobody: Call;
  /** The first admin, in a session. */
  readonly root: Call;
  /** The automation token. */
  readonly token: Call;
  /** Creates a user with PASSWORD. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  create(name: string, role?: string, fields?: object): Promise<any>;
  /** Opens a session; throws when the API refuses. */
  signIn(email: string, password?: string, totp?: string): Promise<Call>;
  /** The status of a sign-in: 200 or the error. */
  signInStatus(email: string, password: string, totp?: string): Promise<number>;
}

/** Starts a gateway with the user ROOT before the tests of the file and ends it after them. */
export function usePeople(): People {
  let running: Gateway | null = null;
  let root: Call | null = null;
  let token: Call | null = null;
  const gateway = () => {
    if (running === null) throw new Error("the gateway does not run yet");
    return running;
  };
  const caller =
    (headers: Record<string, string>): Call =>
    async (line, body) => {
      const [method = "GET", path = ""] = line.split(/ (.*)/s);
      const response = await gateway().api(method, `/api/v1${path}`, body, headers);
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === "" ? "" : JSON.parse(text),
      };
    };
  const nobody = caller({});
  const logIn = (email: string, password: string, totp?: string) =>
    nobody("POST /auth/login", { email, password, ...(totp === undefined ? {} : { totp }) });
  const signIn = async (email: string, password = PASSWORD, totp?: string) => {
    const { status, headers, body } = await logIn(email, password, totp);
    const [cookie] = (headers.get("set-cookie") ?? "").split(";");
    if (status !== 200 || !cookie) throw new Error(`${status} ${JSON.stringify(body)}`);
    return caller({ cookie });
  };
  beforeAll(async () => {
    running = await startGateway({ workers: 1 });
    await expectOk(nobody("POST /users", ROOT));
    root = await signIn(ROOT.email);
    const made = await expectOk(root("POST /admin/token"));
    token = caller({ authorization: `Bearer ${made.token}` });
  });
  afterAll(async () => {
    await running?.stop();
  });
  const started = (call: Call | null): Call => {
    if (call === null) throw new Error("nobody is signed in yet");
    return call;
  };
  return {
    get gateway() {
      return gateway();
    },
    nobody,
    root: (line, body) => started(root)(line, body),
    token: (line, body) => started(token)(line, body),
    create: (name, role = "viewer", fields = {}) =>
      expectOk(
        started(token)("POST /users", {
          email: `${name}@a.example`,
          name,
          role,
          password: PASSWORD,
          ...fields,
        }),
      ),
    signIn,
    signInStatus: async (email, password, totp) => (await logIn(email, password, totp)).status,
  };
}

/** The body of a response that must be 200. */
export async function expectOk(answer: Promise<Answer>) {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}
