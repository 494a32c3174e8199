// What a route does with the requests that it takes: paths, host, redirects, times, maintenance; knows no other route.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { RetryFields, retrySummary } from "../services/retry-fields.tsx";
import { defaultRetries } from "../services/service-values.ts";
import type { RouteFieldsProps } from "./route-form.tsx";

export function ForwardFields({ form }: RouteFieldsProps) {
  const { preserve_host, https_redirect, path_rewrite } = form.values;
  return (
    <Section title="What becomes of them" text="How a request is passed on.">
      <Stack>
        <Select
          label="Plain HTTP is sent on to HTTPS"
          description="Visitors who come without encryption are told to come with it; there has to be a certificate"
          data={[
            { value: "no", label: "No" },
            { value: "308", label: "Yes, and methods stay as they are (308)" },
            { value: "301", label: "Yes, as old clients know it (301)" },
          ]}
          allowDeselect={false}
          value={https_redirect === false ? "no" : https_redirect === 301 ? "301" : "308"}
          onChange={(next) =>
            form.setFieldValue("https_redirect", next === "no" ? false : next === "301" ? 301 : 308)
          }
        />
        <Switch
          label="Strip the path"
          description="With the path /shop, a request for /shop/cart asks the target for /cart"
          {...form.getInputProps("strip_path", { type: "checkbox" })}
        />
        <TextInput
          label="Replace the prefix"
          description="With the path /shop and /store here, a request for /shop/cart asks the target for /store/cart"
          placeholder="/store"
          {...form.getInputProps("prefix_rewrite")}
          value={form.values.prefix_rewrite ?? ""}
        />
        <Switch
          label="Rewrite the path"
          description="By a regular expression, after the prefix"
          checked={path_rewrite !== null}
          onChange={(event) =>
            form.setFieldValue(
              "path_rewrite",
              event.currentTarget.checked ? { regex: "", to: "" } : null,
            )
          }
        />
        {path_rewrite !== null && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="What is looked for"
              placeholder="^/old/(.*)$"
              {...form.getInputProps("path_rewrite.regex")}
            />
            <TextInput
              label="What takes its place"
              description="$1 to $9 stand for what the brackets have found"
              placeholder="/new/$1"
              {...form.getInputProps("path_rewrite.to")}
            />
          </SimpleGrid>
        )}
        <Select
          label="Host header"
          data={[
            { value: "service", label: "As the service says" },
            { value: "client", label: "The one that the visitor asked for" },
            { value: "target", label: "The target's own" },
          ]}
          allowDeselect={false}
          value={preserve_host === null ? "service" : preserve_host ? "client" : "target"}
          onChange={(next) =>
            form.setFieldValue("preserve_host", next === "service" ? null : next === "client")
          }
        />
        <Switch
          label="WebSocket"
          description="Connections that stay open, as chats and dashboards use them, are passed on"
          {...form.getInputProps("websocket", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}

const TIMES = [
  ["connect_timeout", "To connect"],
  ["response_timeout", "For the first byte of the answer"],
  ["read_timeout", "Between two parts of the answer"],
  ["write_timeout", "Until the target takes more of the request"],
  ["request_timeout", "For the whole request"],
] as const;

export function LimitFields({ form }: RouteFieldsProps) {
  const { timeouts, retries, body_min_rate: rate } = form.values;
  const own = Object.values(timeouts).filter((value) => value !== null).length;
  const times = own === 0 ? "Times of the service" : `${own} of 5 times its own`;
  const again =
    retries === null ? "retries of the service." : `own retries. ${retrySummary(retries)}`;
  return (
    <FoldedSection
      title="Times and trying again"
      text="Where this route differs from its service."
      summary={`${times}; ${again}`}
      isOpenAtFirst={own > 0 || retries !== null || rate !== null}
      fields={["timeouts", "body_min_rate", "retries"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {TIMES.map(([name, label]) => (
          <NumberField
            key={name}
            label={label}
            placeholder="as the service"
            suffix=" ms"
            {...form.getInputProps(`timeouts.${name}`)}
          />
        ))}
        <NumberField
          label="Minimum rate of request bodies"
          placeholder="as the listener"
          suffix=" bytes per second"
          {...form.getInputProps("body_min_rate")}
        />
      </SimpleGrid>
      <Switch
        label="Own rules for trying again"
        description="They take the place of the service's"
        checked={retries !== null}
        onChange={(event) =>
          form.setFieldValue("retries", event.currentTarget.checked ? { ...defaultRetries } : null)
        }
      />
      {retries !== null && <RetryFields input={(name) => form.getInputProps(`retries.${name}`)} />}
    </FoldedSection>
  );
}

export function MaintenanceFields({ form }: RouteFieldsProps) {
  const { maintenance } = form.values;
  return (
    <FoldedSection
      title="Maintenance"
      text="Visitors see a page that says so, instead of an application that is being worked on."
      summary={maintenance === null ? "Off." : "On: visitors are answered with 503."}
      isOpenAtFirst={maintenance !== null}
      fields={["maintenance"]}
      errors={form.errors}
    >
      <Switch
        label="Answer with the maintenance page"
        checked={maintenance !== null}
        onChange={(event) =>
          form.setFieldValue(
            "maintenance",
            event.currentTarget.checked ? { retry_after: 300, html: "", bypass_cidrs: [] } : null,
          )
        }
      />
      {maintenance !== null && (
        <>
          <NumberField
            label="Come again after"
            description="What programs are told, in seconds"
            {...{ suffix: " s", empty: 0 }}
            {...form.getInputProps("maintenance.retry_after")}
          />
          <ListField
            label="Networks that are served as usual"
            description="Yours, to see whether it works again"
            placeholder="192.168.0.0/16"
            {...form.getInputProps("maintenance.bypass_cidrs")}
          />
          <Textarea
            label="Page"
            description="HTML; empty: the built-in one"
            autosize
            minRows={2}
            maxRows={12}
            {...form.getInputProps("maintenance.html")}
          />
        </>
      )}
    </FoldedSection>
  );
}
