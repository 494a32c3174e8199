// Whether an address to listen on is reached from this machine only; knows no socket.

export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "::1" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
