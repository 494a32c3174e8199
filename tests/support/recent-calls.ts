// The last requests to the management API of a gateway, and those that the gateway itself lists, for the report of a failed test.

/** Of the test, and of the gateway. */
const COUNT = 10;

/** How long a gateway that may be stuck is asked for its requests. */
const PATIENCE_MS = 2000;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
}

export class RecentCalls {
  readonly #lines: { text: string }[] = [];
  /** Headers that were accepted last, with the credentials of the test. */
  #accepted: Record<string, string> = {};

  note({ method, path, headers }: Call, response: Promise<Response>): Promise<Response> {
    const begun = performance.now();
    const line = { text: `${method} ${path} is not answered` };
    this.#lines.push(line);
    if (this.#lines.length > COUNT) this.#lines.shift();
    const end = (result: unknown) => {
      line.text = `${method} ${path} ${result} in ${Math.round(performance.now() - begun)} ms`;
    };
    response.then(({ ok, status }) => {
      end(status);
      if (ok && Object.keys(headers).length > 0) this.#accepted = headers;
    }, end);
    return response;
  }

  /** Requests that the test sent with `api`, then those that the gateway at this address served, the last one first. */
  async list(admin: string): Promise<string[]> {
    const served = await this.#servedBy(admin);
    const quoted = (line: string) => `  ${line}`;
    return [
      `last calls of api: ${this.#lines.length}`,
      ...this.#lines.map(({ text }) => quoted(text)),
      ...(typeof served === "string"
        ? [`its list of requests: ${served}`]
        : [
            `last requests that it served: ${served.length}`,
            ...served.map((each) => quoted(JSON.stringify(each))),
          ]),
    ];
  }

  async #servedBy(admin: string): Promise<unknown[] | string> {
    if (admin === "") return "it has not started";
    try {
      const response = await fetch(`${admin}/api/v1/requests?limit=${COUNT}`, {
        headers: this.#accepted,
        tls: { rejectUnauthorized: false },
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      return response.ok ? ((await response.json()) as unknown[]) : `status ${response.status}`;
    } catch (error) {
      return String(error);
    }
  }
}
