// Finds the page of a path in the table of pages and draws it; knows no page by name.
import { Anchor, Container, Stack, Text, Title } from "@mantine/core";
import { type ComponentType, lazy, useEffect } from "react";
import { Link } from "wouter";
import { includesRole } from "../api/queries.ts";
import type { Role } from "../api/resources.ts";
import { type PageEntry, type PageProps, pages } from "../pages.ts";

/** A page is loaded once; React tells lazy components apart by identity. */
const components: ReadonlyMap<PageEntry, ComponentType<PageProps>> = new Map(
  pages.map((page) => [page, lazy(page.load)]),
);

interface Place extends PageProps {
  readonly page: PageEntry;
}

/** Takes `/ui/PAGE/ID/PART` apart; null when there is no such page. */
export function findPlace(path: string): Place | null {
  const [, prefix = "", name = "", id = null, part = null, ...rest] = path
    .replace(/\/$/, "")
    .split("/")
    .map((word) => decodeURIComponent(word));
  if (rest.length > 0 || (prefix !== "" && prefix !== "ui")) return null;
  const page = pages.find((entry) => entry.path === name);
  return page === undefined ? null : { page, id, part };
}

export function PageSwitch({ path, role }: { readonly path: string; readonly role: Role }) {
  const place = findPlace(path);
  const title = place?.page.title ?? "Not found";
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  if (place === null)
    return <Message title="There is no such page" text="The address may be old or mistyped." />;
  if (!includesRole(role, place.page.role))
    return (
      <Message
        title={place.page.title}
        text={`This page needs the role ${place.page.role}; yours is ${role}.`}
      />
    );
  const Page = components.get(place.page);
  return Page === undefined ? null : <Page id={place.id} part={place.part} />;
}

function Message({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <Container size="xs" py="xl">
      <Stack gap="xs">
        <Title order={1} size="h3">
          {title}
        </Title>
        <Text c="dimmed">{text}</Text>
        <Anchor component={Link} href="/">
          To the dashboard
        </Anchor>
      </Stack>
    </Container>
  );
}
