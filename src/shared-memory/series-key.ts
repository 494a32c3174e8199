// The keys of counter rows, for both planes; knows no counter.

/** Includes the service: a route that leads to another service starts new counters. */
export const routeSeriesKey = (routeId: string, serviceId: string | null): string =>
  `route ${routeId} ${serviceId ?? ""}`;

export const streamSeriesKey = (streamRouteId: string, serviceId: string): string =>
  `stream ${streamRouteId} ${serviceId}`;

export const listenerSeriesKey = (listenerId: string): string => `listener ${listenerId}`;

export const pluginSeriesKey = (name: string): string => `plugin ${name}`;

export const cacheSeriesKey = (pluginId: string): string => `cache ${pluginId}`;

/** On the board of targets: connections of a stream route. */
export const streamBoardKey = (streamRouteId: string): string => `stream ${streamRouteId}`;

/** On the board of targets: requests in flight of a listener, and of all. */
export const inFlightKey = (listenerId: string): string => `requests of ${listenerId}`;
export const IN_FLIGHT_KEY = "requests";

/** On the board of targets: connections of a listener with a socket of ours. */
export const connectionsKey = (listenerId: string): string => `listener ${listenerId}`;

/** In the traffic memory of targets. */
export const targetSeriesKey = (targetId: string): string => `target ${targetId}`;
