// The keys by which both planes name a row of counters; knows no counter.

/** A route that leads to another service counts anew, because the counts of one are no counts of the other. */
export const routeSeriesKey = (routeId: string, serviceId: string | null): string =>
  `route ${routeId} ${serviceId ?? ""}`;

export const streamSeriesKey = (streamRouteId: string, serviceId: string): string =>
  `stream ${streamRouteId} ${serviceId}`;

export const listenerSeriesKey = (listenerId: string): string => `listener ${listenerId}`;

export const pluginSeriesKey = (name: string): string => `plugin ${name}`;

/** On the board of targets: the connections that a stream route has. */
export const streamBoardKey = (streamRouteId: string): string => `stream ${streamRouteId}`;

/** On the board of targets: requests in flight through a listener, and through all of them. */
export const inFlightKey = (listenerId: string): string => `requests of ${listenerId}`;
export const IN_FLIGHT_KEY = "requests";

/** On the board of targets: the connections that a listener has, where connections are counted. */
export const connectionsKey = (listenerId: string): string => `listener ${listenerId}`;

/** In the memory for targets. */
export const targetSeriesKey = (targetId: string): string => `target ${targetId}`;
