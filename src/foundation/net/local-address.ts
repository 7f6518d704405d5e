/**
 * Whether this machine may connect from an IP address: binds a UDP socket to it, which sends nothing. Asking for the
 * addresses of the interfaces would miss those that a route makes local (AnyIP).
 */
export const isLocalAddress = async (address: string): Promise<boolean> => {
  try {
    const socket = await Bun.udpSocket({ hostname: address, port: 0 });
    socket.close();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
};
