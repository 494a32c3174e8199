// Runs inside of the sandbox before the user's script: objects for handlers, and guards of slow built-ins; JavaScript as text.

/**
 * An expression: a function that takes the host functions and returns the function by which the host calls handlers. That one
 * returns undefined, or the message of what the handler has thrown. Everything it uses later is saved before the script can
 * replace it.
 *
 * The engine checks the clock between steps of a script only, so that one call of a built-in could take minutes: joining an
 * array of a billion holes, searching a long text in a longer one. The guards reject what is too large, and check the clock
 * before large operations.
 */
export const PRELUDE = `(function (host) {
  "use strict";
  const { apply, ownKeys, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { parse, stringify } = JSON;
  const { freeze } = Object;
  const { isArray } = Array;
  const [text, TypeError_, RangeError_] = [String, TypeError, RangeError];
  const MAX_ELEMENTS = 100000, LONG_TEXT = 20000, MAX_SEARCH = 100000000;

  function guard(prototype, before) {
    for (const key of ownKeys(prototype)) {
      const property = getOwnPropertyDescriptor(prototype, key);
      const native = property.value;
      if (typeof key !== "string" || key === "constructor" || typeof native !== "function") continue;
      property.value = { [key](...args) {
        before(this, args, key);
        return apply(native, this, args);
      } }[key];
      defineProperty(prototype, key, property);
    }
  }
  const elements = (list) => {
    const count = typeof list === "object" && list !== null ? list.length : 0;
    if (count > MAX_ELEMENTS) throw new RangeError_("a list of more than " + MAX_ELEMENTS + " elements");
    if (count > 1000) host.spend();
  };
  const ofLists = (self, args, key) => {
    elements(self);
    if (key === "concat") for (let at = 0; at < args.length; at++) if (isArray(args[at])) elements(args[at]);
  };
  const ofTexts = (self, args, key) => {
    const length = typeof self === "string" ? self.length : LONG_TEXT + 1;
    const [first] = args;
    const isLonger = key === "repeat" || key === "padStart" || key === "padEnd";
    if (length > LONG_TEXT || (isLonger && length * first > LONG_TEXT)) host.spend();
    if (typeof first === "string" && length * first.length > MAX_SEARCH)
      throw new RangeError_("a search of a long text in a long text");
  };
  guard(Array.prototype, ofLists);
  guard(getPrototypeOf(Uint8Array.prototype), ofLists);
  guard(String.prototype, ofTexts);

  const optional = (value) => (value === undefined || value === null ? null : text(value));
  const request = freeze({
    __proto__: null,
    get id() { return host.fact("id"); },
    get method() { return host.fact("method"); },
    get scheme() { return host.fact("scheme"); },
    get host() { return host.fact("host"); },
    get path() { return host.fact("path"); },
    get query() { return host.fact("query"); },
    get clientAddress() { return host.fact("clientAddress"); },
    get country() { return host.fact("country"); },
    get route() { return host.fact("route"); },
    get service() { return host.fact("service"); },
    get headers() { return parse(host.fact("headers")); },
    get consumer() { return parse(host.fact("consumer")); },
    get groups() { return parse(host.fact("groups")); },
    get reasons() { return parse(host.fact("reasons")); },
    get result() { return parse(host.fact("result")); },
    header(name) { return host.find("header", text(name)); },
    cookie(name) { return host.find("cookie", text(name)); },
    queryValue(name) { return host.find("query", text(name)); },
    setHeader(name, value) { host.edit("setHeader", text(name), text(value)); },
    addHeader(name, value) { host.edit("addHeader", text(name), text(value)); },
    removeHeader(name) { host.edit("removeHeader", text(name), ""); },
    setQuery(name, value) { host.edit("setQuery", text(name), optional(value)); },
    setMethod(method) { host.edit("setMethod", text(method), ""); },
    setPath(path) { host.edit("setPath", text(path), ""); },
    setHost(name) { host.edit("setHost", text(name), ""); },
    reject(status, detail, reason) { host.reject(+status, optional(detail), optional(reason)); },
    reply(status, options) {
      const { headers, body, reason } = options ?? {};
      host.reply(+status, stringify(headers ?? {}), optional(body), optional(reason));
    },
    note(reason) { host.note(text(reason)); },
    log(message) { host.log(text(message)); },
  });
  const response = freeze({
    __proto__: null,
    get status() { return host.status(); },
    set status(status) { host.setStatus(+status); },
    get source() { return host.fact("source"); },
    header(name) { return host.find("response", text(name)); },
    setHeader(name, value) { host.editResponse("set", text(name), text(value)); },
    addHeader(name, value) { host.editResponse("append", text(name), text(value)); },
    removeHeader(name) { host.editResponse("delete", text(name), ""); },
  });

  const isPromise = (value) => typeof value === "object" && value !== null && typeof value.then === "function";
  return (handler) => {
    try {
      if (isPromise(handler(request, response))) throw new TypeError_("handlers cannot be async");
      return undefined;
    } catch (error) {
      try {
        return text(error);
      } catch {
        return "a value that is no error";
      }
    }
  };
})`;
