// Converts streams of Nginx Proxy Manager to stream routes.
import type { Members } from "../members.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isOn, isSet, omitState, rowsOf, timesOf } from "./rows.ts";

export function addStreams(context: NpmContext): void {
  for (const members of rowsOf("stream", context)) {
    const port = members.number("incoming_port");
    members.setLabel(`stream on port ${port}`);
    omitState(members);
    const host = members.text("forwarding_host") ?? members.text("forward_ip") ?? "";
    const target = {
      host: host.replace(/^\[(.*)\]$/, "$1"),
      port: members.number("forwarding_port"),
    };
    const wasOn = isOn(members);
    const certificate = members.number("certificate_id") ?? 0;
    const fields = {
      listen_port: port,
      // The gateway that imports it looks whether the port is free.
      enabled: wasOn,
      ...(certificate > 0
        ? {
            tls_mode: "terminate",
            certificate_id: context.certificates.get(certificate)?.id ?? null,
          }
        : {}),
      ...timesOf(members),
    };
    for (const protocol of ["tcp", "udp"] as const)
      if (isSet(members, `${protocol}_forwarding`))
        addStream(members, { protocol, target, fields }, context);
  }
}

interface Stream {
  readonly protocol: "tcp" | "udp";
  readonly target: Readonly<Record<string, unknown>>;
  readonly fields: Readonly<Record<string, unknown>>;
}

function addStream(
  members: Members,
  { protocol, target, fields }: Stream,
  { output }: NpmContext,
): void {
  const key = `stream ${idOf(members)} ${protocol}`;
  const label = `${members.label} (${protocol})`;
  const wanted = `stream-${protocol}-${String(fields["listen_port"])}`;
  const name = output.name("services", wanted);
  const serviceId = output.add(
    "services",
    { key, label: `service of ${label}` },
    { name, protocol },
  );
  output.add("targets", { key, label: `target of ${label}` }, { ...target, service_id: serviceId });
  const { tls_mode: _, certificate_id: __, ...plain } = fields;
  output.add(
    "stream_routes",
    { key, label },
    {
      ...(protocol === "udp" ? plain : fields),
      name: output.name("stream_routes", wanted),
      protocol,
      service_id: serviceId,
    },
  );
  output.report.imported(label, "became a stream route");
}
