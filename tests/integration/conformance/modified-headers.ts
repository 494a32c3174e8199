// A filter that changes request header fields, and a request with the expected fields; several tests share both.
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
