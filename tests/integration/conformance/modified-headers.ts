// A filter that changes header fields of requests, and a request with what becomes of its fields; several tests have both.
export const modify = {
  name: "transform",
  config: {
    request: {
      headers: {
        set: { "X-Header-Set": "set-overwrites-values" },
        add: { "X-Header-Add": "header-val-1", "X-Header-Add-Append": "header-val-2" },
        remove: ["X-Header-Remove"],
      },
    },
  },
};
export const modified = {
  headers: {
    "X-Header-Remove": "remove-val",
    "X-Header-Add-Append": "append-val-1",
    "X-Header-Set": "set-val",
  },
  seen: {
    "X-Header-Add": "header-val-1",
    "X-Header-Add-Append": "append-val-1, header-val-2",
    "X-Header-Set": "set-overwrites-values",
    "X-Header-Remove": null,
  },
};
