// @ts-check
// The shapes of the data that Python sends, for the type checker; holds no code.

/**
 * @typedef {{
 *   get(name: string): any, set(name: string, value: any): void, save_changes(): void,
 *   send(content: any): void, on(name: string, handler: Function): void,
 *   off(name: string, handler?: Function): void, widget_manager?: any
 * }} Model
 *
 * @typedef {{count: number, text: string} | null | undefined} Badge
 * @typedef {"added" | "removed" | "changed" | null | undefined} Diff
 * @typedef {{key: string, node: string, name: string, type: string, family: string, shape: string,
 *   params: string, y: number, h: number, tip?: string, badge?: Badge, diff?: Diff, failed?: boolean}} Row
 * @typedef {{label: string, x: number, y: number, w: number, h: number,
 *   edges: {d: string, value: string}[]}} More
 * @typedef {{key: string, kind: "card", x: number, y: number, w: number, h: number, rows: Row[],
 *   column?: number, more?: More}} Card
 * @typedef {{key: string, kind: "box", scopes: string[], scope: string, name: string, type: string,
 *   count: number, shape: string, params: string, x: number, y: number, w: number, h: number,
 *   badge?: Badge, diff?: Diff, more?: More}} Box
 * @typedef {{key: string, kind: "pill", node: string, name: string, shape: string, x: number,
 *   y: number, w: number, h: number, badge?: Badge, diff?: Diff, more?: More}} Pill
 * @typedef {{key: string, value: string, d: string, skip?: boolean, arrow?: boolean, shape?: string,
 *   from?: string, to?: string}} Edge
 * @typedef {{key: string, kind: "group", scope: string, name: string, type: string, params: string,
 *   shape?: string, depth: number, x: number, y: number, w: number, h: number, head: number,
 *   badge?: Badge, diff?: Diff, items: Item[], edges: Edge[]}} Group
 * @typedef {Group | Card | Box | Pill} Item
 * @typedef {{width: number, height: number, group: Group, stats?: any}} Scene
 *
 * @typedef {{name: string, label?: string, type: string, default?: any, choices?: any[] | null,
 *   help?: string}} Field
 * @typedef {{operation: string, label: string, group?: string, fields?: Field[], count?: number,
 *   note?: string, arguments?: Record<string, any>, pending?: boolean,
 *   uid?: any}} Offer  Still being tried, if it is pending. Of a step that is there, if it has a uid.
 * @typedef {{uid: any, operation: string, text: string, detail?: string, enabled: boolean,
 *   state: "ok" | "off" | "failed", reason?: string}} Step
 * @typedef {{severity: "ok" | "info" | "warning" | "error", text: string, cure?: any}} Finding
 * @typedef {{state?: "running" | "done" | "failed" | "stopped", name?: string, number?: number,
 *   of?: number, holds?: boolean, text?: string}} Checking
 * @typedef {{ok?: boolean, findings?: Finding[],
 *   facts?: {label: string, before: any, after: any}[]}} Report
 *
 * @typedef {{
 *   model: Model, el: HTMLElement, root: HTMLElement, signal: AbortSignal,
 *   state: import("./state.js").WidgetState,
 *   ask: (method: string, params?: any, options?: {timeout?: number}) => Promise<any>,
 *   say: (text: string, kind?: "info" | "error") => void,
 *   fail: (error: unknown) => void,
 *   busy: (working: boolean) => void
 * }} View  What every part of a view is given.
 */

export {};
