// The navigation with the permitted pages, in groups; knows no page by name.
import { NavLink, Text } from "@mantine/core";
import { Fragment, useEffect } from "react";
import { Link, useLocation } from "wouter";
import { includesRole, useStatus } from "../api/queries.ts";
import type { Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { type PageEntry, pages } from "../pages.ts";
import { matchPage } from "./page-match.ts";

export function Navigation({ role }: { readonly role: Role }) {
  const [path] = useLocation();
  const current = matchPage(path)?.page;
  // In a low window the current page may be outside of the visible list.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is another entry
  useEffect(() => {
    document.querySelector('nav [aria-current="page"]')?.scrollIntoView({ block: "nearest" });
  }, [path]);
  const { data: status } = useStatus();
  const isListed = ({ isListed: where }: PageEntry) =>
    where === "in a fleet" ? (status?.fleet ?? null) !== null : where !== false;
  const open = pages.filter((page) => isListed(page) && includesRole(role, page.role));
  const groups = [...Map.groupBy(open, ({ group }) => group)];
  return groups.map(([group, entries]) => (
    <Fragment key={group}>
      {group !== "" && (
        <Text size="xs" fw={600} c="dimmed" px="sm" pt={10} pb={2}>
          {group}
        </Text>
      )}
      {entries.map((page) => (
        <Entry key={page.path} page={page} isActive={page === current} />
      ))}
    </Fragment>
  ));
}

function Entry({ page, isActive }: { readonly page: PageEntry; readonly isActive: boolean }) {
  const Icon = page.icon;
  return (
    <NavLink
      component={Link}
      href={pagePath(page.path)}
      label={page.title}
      leftSection={<Icon size={17} stroke={1.6} />}
      active={isActive}
      aria-current={isActive ? "page" : undefined}
      py={3}
      style={{ borderRadius: "var(--mantine-radius-sm)" }}
    />
  );
}
